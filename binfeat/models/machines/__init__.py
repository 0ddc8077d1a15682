"""Kinds of kernel models."""
