"""Encodings of targets."""
