"""Published studies as folders of files: their reports and claims, and how our results compare."""
