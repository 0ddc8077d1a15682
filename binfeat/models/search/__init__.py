"""The search for length scales."""
