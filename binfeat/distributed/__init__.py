"""The maps and ridge machines on Dask arrays and dataframes.

They run on the caller's `distributed.Client`, or on the scheduler that `dask.config` names. What they learn equals what
the classes of the same names in `binfeat` learn from the same rows: the same bins in the same columns, and the same
coefficients to the solver's tolerance, whatever the chunks. Rows in memory are taken as those classes take them. It
takes the packages of ``pip install "binfeat[dask]"``.
"""

from binfeat.distributed.binning import BinBlocks, RandomBinning
from binfeat.distributed.fourier import RandomFourier
from binfeat.distributed.relevance import learn_gamma
from binfeat.distributed.ridge import CGRidge, CGRidgeClassifier

__all__ = ["BinBlocks", "CGRidge", "CGRidgeClassifier", "RandomBinning", "RandomFourier", "learn_gamma"]
