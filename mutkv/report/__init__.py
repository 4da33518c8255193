"""Tables that sum up a dataset or a score for a reader."""
