"""Kinds of kernel machines."""
