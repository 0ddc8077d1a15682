"""Hyperparameter selection of kernel models, and fitted models."""
