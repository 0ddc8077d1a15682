"""Targets as a machine learns them."""
