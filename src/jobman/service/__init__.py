"""What a client can ask for."""
