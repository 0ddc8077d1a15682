"""The search for scaling and length scales."""
