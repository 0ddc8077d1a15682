"""Fitted machines in forms that need none of this package to predict."""
