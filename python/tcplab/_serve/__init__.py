"""A store in a browser on this computer: what is there, the answer so far, the report."""
