"""What the kernels of `binfeat.kernels` are made of."""
