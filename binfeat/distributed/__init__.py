"""Feature maps, linear models, kernel models and the outlier detector on Dask arrays and dataframes.

They run on the current `distributed.Client`, or on the scheduler set in `dask.config`. From the same rows they learn
the same bins in the same columns as the classes with the same names in `binfeat`, and the same coefficients up to the
solver's tolerance, for any chunks. They also accept rows in memory. Install the required packages by ``pip install
"binfeat[dask]"``.
"""

from binfeat.distributed.binning import BinBlocks, RandomBinning
from binfeat.distributed.fourier import RandomFourier
from binfeat.distributed.machine import KernelMachineClassifier, KernelMachineRegressor
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
