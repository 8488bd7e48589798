"""What is told of captures in Python."""
