"""Experiments as Python has them: read, written, and worked out to the runs that they ask for."""
