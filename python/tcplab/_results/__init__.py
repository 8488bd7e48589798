"""What came out of an experiment: summaries, metrics, comparisons, and their forms of output."""
