"""Displays and their helper functions."""
