"""Base classes and quantile functions of the kernels in `binfeat.kernels`."""
