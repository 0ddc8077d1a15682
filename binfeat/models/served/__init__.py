"""Fitted models in formats that need no binfeat for predictions."""
