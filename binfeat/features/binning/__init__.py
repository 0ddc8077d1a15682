"""Parts of random binning: grids, hashes, bins, codes."""
