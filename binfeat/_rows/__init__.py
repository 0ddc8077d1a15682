"""Rows of features with targets and weights, in memory or streamed, and sources of row blocks."""
