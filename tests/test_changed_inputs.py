"""Kernel values of rows some of whose inputs change: against those of the whole rows."""

import numpy as np
import pytest

from binfeat._machine.kernel_algebra import changed_inputs
from binfeat._machine.kernel_algebra.changed_inputs import ChangedInputs
from binfeat._machine.kernel_algebra.matrices import Linear, kernel_matrix
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat.kernels import RBF, Laplacian, Matern

CATEGORICAL = np.array([False, True, False, False, True])
GAMMA = np.array([0.5, 0.7, 0.0, 0.2, 0.3])


def columns(rng, n):
    return np.where(CATEGORICAL, rng.integers(3, size=(n, 5)), rng.normal(size=(n, 5))).T.astype(np.float32)


@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize(
    "kernels", [[Laplacian()], [RBF()], [Matern(1.5), Laplacian()], [Matern(2.5), Linear()], [Matern(0.5)]], ids=repr
)
def test_values_are_those_of_whole_rows(rng, monkeypatch, kernels, is_mapped):
    monkeypatch.setattr(changed_inputs, "_BLOCK", 7)
    linear_map = rng.normal(size=(5, 4)) if is_mapped else None
    matrices = [kernel_matrix(kernel, CATEGORICAL, None, linear_map) for kernel in kernels]
    kernel = KernelSum(matrices, [0.75, 0.5][: len(kernels)], [GAMMA, 0.5 * GAMMA][: len(kernels)])
    A, B, other = columns(rng, 20), columns(rng, 30), columns(rng, 20)
    values = ChangedInputs(kernel, A, B)
    for inputs in ([0], [1], [0, 3], [0, 1, 4], [], [2], [0, 1, 2, 3, 4]):
        changed = np.isin(np.arange(5), inputs)
        whole = np.where(changed[:, np.newaxis], other, A)
        for rows in (slice(0, 20), slice(5, 9)):
            found = values(rows, changed, other[changed, rows])
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, kernel(whole[:, rows], B), rtol=1e-5, atol=1e-6)
