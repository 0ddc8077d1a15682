"""Exact kernel matrices, their factors, and leave-one-out errors."""
