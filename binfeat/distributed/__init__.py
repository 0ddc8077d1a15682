"""The maps, ridge machines, kernel machines and outlier detector on Dask arrays and dataframes.

They run on the caller's `distributed.Client`, or on the scheduler set in `dask.config`. From the same rows they learn
what the classes of the same names in `binfeat` learn, for any chunks: the same bins in the same columns, and the same
coefficients up to the solver's tolerance. They also take rows in memory, as those classes do. Install the packages they
need by ``pip install "binfeat[dask]"``.
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
