"""Rows of features with their targets and weights, wherever they live, and sources of row blocks."""
