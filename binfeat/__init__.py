"""A Numba engine for sparse random features, and linear and kernel models for tables built on them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from binfeat import kernels as kernels
    from binfeat._binning.bin_matrix import BinMatrix as BinMatrix
    from binfeat._binning.hashed_transform import transform as transform
    from binfeat._machine.files import load as load
    from binfeat._rows.sources import blocks as blocks
    from binfeat._warm_up import warm_up as warm_up
    from binfeat.binning import RandomBinning as RandomBinning
    from binfeat.clusters import SpectralClustering as SpectralClustering
    from binfeat.clusters import SpectralEmbedding as SpectralEmbedding
    from binfeat.density import OutlierDetector as OutlierDetector
    from binfeat.display import ContributionDisplay as ContributionDisplay
    from binfeat.display import IntervalDisplay as IntervalDisplay
    from binfeat.display import KernelErrorDisplay as KernelErrorDisplay
    from binfeat.display import LearningCurveDisplay as LearningCurveDisplay
    from binfeat.display import RelevanceDisplay as RelevanceDisplay
    from binfeat.display import ShapleyDisplay as ShapleyDisplay
    from binfeat.few_labels import LabelSpreading as LabelSpreading
    from binfeat.fourier import RandomFourier as RandomFourier
    from binfeat.machine import KernelMachineClassifier as KernelMachineClassifier
    from binfeat.machine import KernelMachineRegressor as KernelMachineRegressor
    from binfeat.relevance import learn_gamma as learn_gamma
    from binfeat.ridge import CGRidge as CGRidge
    from binfeat.ridge import CGRidgeClassifier as CGRidgeClassifier
    from binfeat.union import RandomFeatureUnion as RandomFeatureUnion

__version__: str

# Imported on first use, so that `import binfeat` does not wait for Numba and scikit-learn.
_HOMES = {
    "BinMatrix": "_binning.bin_matrix",
    "CGRidge": "ridge",
    "CGRidgeClassifier": "ridge",
    "ContributionDisplay": "display",
    "IntervalDisplay": "display",
    "KernelErrorDisplay": "display",
    "KernelMachineClassifier": "machine",
    "KernelMachineRegressor": "machine",
    "LabelSpreading": "few_labels",
    "LearningCurveDisplay": "display",
    "ShapleyDisplay": "display",
    "OutlierDetector": "density",
    "RandomBinning": "binning",
    "RandomFeatureUnion": "union",
    "RandomFourier": "fourier",
    "RelevanceDisplay": "display",
    "SpectralClustering": "clusters",
    "SpectralEmbedding": "clusters",
    "blocks": "_rows.sources",
    "kernels": "",
    "learn_gamma": "relevance",
    "load": "_machine.files",
    "transform": "_binning.hashed_transform",
    "warm_up": "_warm_up",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name == "__version__":
        return import_module("importlib.metadata").version("binfeat")
    if name not in _HOMES:
        raise AttributeError(f"module 'binfeat' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"binfeat.{home}"), name) if home else import_module(f"binfeat.{name}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
