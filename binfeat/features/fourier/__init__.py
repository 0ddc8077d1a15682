"""What random Fourier features are made of: frequencies and projections."""
