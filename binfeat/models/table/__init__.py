"""A raw table as numbers."""
