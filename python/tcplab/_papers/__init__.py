"""Published studies as folders of files: what they report, claim and did, and how ours compare."""
