"""What exists and what may happen: values and transitions, no input or output."""
