"""Serves a store to a browser on this computer: its runs, the answer so far, the report."""
