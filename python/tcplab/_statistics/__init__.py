"""Estimates and their intervals, and series thinned for drawing."""
