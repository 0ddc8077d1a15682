"""Numba kernels: arrays in, arrays out; no scikit-learn, no random numbers, no allocation policy."""
