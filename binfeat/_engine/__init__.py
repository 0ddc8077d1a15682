"""Numba kernels: arrays in, arrays out; no scikit-learn, no random numbers, outputs allocated by the caller."""
