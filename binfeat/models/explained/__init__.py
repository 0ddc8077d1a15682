"""Explanations of the predictions of a fitted model."""
