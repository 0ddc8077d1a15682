"""Densities from the counts of bins: outliers, explanations of outliers, drift between samples."""

from binfeat.density.detector import OutlierDetector

__all__ = ["OutlierDetector"]
