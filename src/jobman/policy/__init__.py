"""What should happen next: pure functions of model values and the time."""
