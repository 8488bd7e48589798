"""Advice on transport settings, and the files that put it into practice."""
