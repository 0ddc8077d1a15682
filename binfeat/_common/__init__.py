"""Helpers of all layers: checks, labels, validation sets, persistence, memory, random words."""
