"""Feature maps, linear models, kernel models and the outlier detector on Dask arrays and dataframes.

The classes have the names, parameters and methods of the classes in `binfeat`. For the same rows, bins and columns are
the same as in memory, and coefficients are the same up to the solver's tolerance, for any chunks. They run on the
current `distributed.Client`, or on the scheduler that is set in `dask.config`, and also accept rows in memory. Install
the required packages by ``pip install "binfeat[dask]"``.
"""

from binfeat.distributed.binning import BinBlocks, RandomBinning
from binfeat.distributed.fourier import RandomFourier
from binfeat.distributed.kernel_models import KernelMachineClassifier, KernelMachineRegressor
from binfeat.distributed.outliers import OutlierDetector
from binfeat.distributed.relevance import learn_gamma
from binfeat.distributed.ridge import CGRidge, CGRidgeClassifier

__all__ = [
    "BinBlocks",
    "CGRidge",
    "CGRidgeClassifier",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "OutlierDetector",
    "RandomBinning",
    "RandomFourier",
    "learn_gamma",
]
