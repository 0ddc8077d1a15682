"""Grids with larger bins, in which rows of sparse regions find their neighbors."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from binfeat.kernels.base import PitchKernel, ProductKernel
from binfeat.kernels.lookup import binning_kernel

_N_WIDTHS = 4  # 2, 4, 8 and 16 times the width
# One of 32 grids for each width. With one of 64, digits and optdigits gain 0.002, but two of three seeds merge blobs
# of 4,000 rows with different densities.
_GRIDS_PER_WIDER = 32


@dataclass(frozen=True)
class WiderGrids(ProductKernel):
    """The pitch law of a kernel, with larger bins in the last eighth of at least 32 grids: 2, 4, 8 and 16 times.

    Bins of categories are not larger.
    """

    kernel: object

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        widths = np.repeat(2.0 ** np.arange(_N_WIDTHS + 1), np.diff([0, *_stages(len(u)), len(u)]))
        return cast(PitchKernel, binning_kernel(self.kernel)).pitch_quantile(u) * widths[:, None]


def _stages(n_grids: int) -> tuple[int, ...]:
    """Return the number of grids up to each width except the largest."""
    return tuple(n_grids - k * (n_grids // _GRIDS_PER_WIDER) for k in range(_N_WIDTHS, 0, -1))


def stages_of(made: object, n_grids: int) -> tuple[int, ...]:
    """Return the numbers of grids of a map in which neighbors are searched before all grids are used."""
    return _stages(n_grids) if isinstance(getattr(made, "kernel", None), WiderGrids) else ()
