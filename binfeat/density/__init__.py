"""Densities from the counts of bins: outliers, explanations of outliers, drift between samples."""
