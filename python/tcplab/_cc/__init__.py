"""Congestion controls that are Python classes: their registry, and the versions of their code."""
