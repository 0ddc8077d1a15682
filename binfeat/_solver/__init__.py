"""Iterative solvers over operators: plain NumPy and the engine's vector kernels."""
