"""What random binning is made of: grids, hashes, bins, codes."""
