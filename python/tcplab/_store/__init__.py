"""Results on disk: groups of runs with their checksums and digests, and the list of runs."""
