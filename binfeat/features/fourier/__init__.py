"""Parts of random Fourier features: frequencies and projections."""
