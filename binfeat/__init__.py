"""A Numba engine for random features, with linear models and kernel models built on them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from binfeat import kernels as kernels
    from binfeat._common.load import load as load
    from binfeat._common.saved_types import TRUSTED_TYPES as TRUSTED_TYPES
    from binfeat._rows.sources import blocks as blocks
    from binfeat._warm_up import warm_up as warm_up
    from binfeat.density.detector import OutlierDetector as OutlierDetector
    from binfeat.features.binning.bin_matrix import BinMatrix as BinMatrix
    from binfeat.features.binning.random_binning import RandomBinning as RandomBinning
    from binfeat.features.fourier.random_fourier import RandomFourier as RandomFourier
    from binfeat.features.learn_gamma.learn_gamma import learn_gamma as learn_gamma
    from binfeat.features.transform import transform as transform
    from binfeat.features.union import RandomFeatureUnion as RandomFeatureUnion
    from binfeat.graph.clusters import SpectralClustering as SpectralClustering
    from binfeat.graph.clusters import SpectralEmbedding as SpectralEmbedding
    from binfeat.graph.label_spreading import LabelSpreading as LabelSpreading
    from binfeat.linear.classifier import CGRidgeClassifier as CGRidgeClassifier
    from binfeat.linear.regressor import CGRidge as CGRidge
    from binfeat.models.classifier import KernelMachineClassifier as KernelMachineClassifier
    from binfeat.models.regressor import KernelMachineRegressor as KernelMachineRegressor
    from binfeat.plots.contributions import ContributionDisplay as ContributionDisplay
    from binfeat.plots.intervals import IntervalDisplay as IntervalDisplay
    from binfeat.plots.kernel_errors import KernelErrorDisplay as KernelErrorDisplay
    from binfeat.plots.learning_curve import LearningCurveDisplay as LearningCurveDisplay
    from binfeat.plots.relevance import RelevanceDisplay as RelevanceDisplay
    from binfeat.plots.shapley import ShapleyDisplay as ShapleyDisplay

__version__: str

# Imported on first use, so that `import binfeat` does not wait for Numba and scikit-learn.
_HOMES = {
    "BinMatrix": "features.binning.bin_matrix",
    "CGRidge": "linear.regressor",
    "CGRidgeClassifier": "linear.classifier",
    "ContributionDisplay": "plots.contributions",
    "IntervalDisplay": "plots.intervals",
    "KernelErrorDisplay": "plots.kernel_errors",
    "KernelMachineClassifier": "models.classifier",
    "KernelMachineRegressor": "models.regressor",
    "LabelSpreading": "graph.label_spreading",
    "LearningCurveDisplay": "plots.learning_curve",
    "ShapleyDisplay": "plots.shapley",
    "OutlierDetector": "density.detector",
    "RandomBinning": "features.binning.random_binning",
    "RandomFeatureUnion": "features.union",
    "RandomFourier": "features.fourier.random_fourier",
    "RelevanceDisplay": "plots.relevance",
    "SpectralClustering": "graph.clusters",
    "SpectralEmbedding": "graph.clusters",
    "TRUSTED_TYPES": "_common.saved_types",
    "blocks": "_rows.sources",
    "kernels": "",
    "learn_gamma": "features.learn_gamma.learn_gamma",
    "load": "_common.load",
    "transform": "features.transform",
    "warm_up": "_warm_up",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("binfeat")
    if name not in _HOMES:
        raise AttributeError(f"module 'binfeat' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"binfeat.{home}"), name) if home else import_module(f"binfeat.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
