"""Reports: one page with the answer."""
