"""Fastfood: frequencies with fast projections by diagonal, permutation and Hadamard matrices."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from binfeat._common.array_types import DTypeLike
from binfeat._common.random_words import NORMALS, ORDER, RADII, SIGNS, stream, uniforms
from binfeat.kernels.base import Kernel


@dataclass(frozen=True)
class Fastfood:
    """The frequencies ``S H G P H B`` of Le, Sarlos & Smola (ICML 2013), in blocks of `length`.

    Given B and P, a row of ``H G P H B`` is a vector of independent normals: its direction is uniform on the sphere,
    and independent of its norm, which depends only on G. G is divided by this norm and S contains new norms, so every
    row has exactly the spectral law. It is the law for `length` inputs; additional inputs are 0.
    Rows of one block share G and are dependent.
    """

    signs: np.ndarray  # (n_blocks, n_inputs): B, times the factor of each input's frequencies
    order: np.ndarray  # (n_blocks, length), int32: P, the source of each element
    normals: np.ndarray  # (n_blocks, length): G
    norms: np.ndarray  # (n_frequencies,): S

    @classmethod
    def draw(cls, kernel: Kernel, scale: np.ndarray, n_frequencies: int, seed: int) -> Self:
        """Draw from an isotropic spectral law, with the factor of each input's frequencies as `scale`.

        Block b depends only on `seed` and b.
        """
        length = 1 << (scale.size - 1).bit_length()
        n_blocks = -(-n_frequencies // length)

        def words(purpose: int, count: int) -> np.ndarray:
            return np.stack([stream(seed, block, purpose).random_raw(count) for block in range(n_blocks)])

        signs = np.where(words(SIGNS, scale.size) >> np.uint64(63), -scale, scale)
        order = np.argsort(words(ORDER, length), axis=1, kind="stable").astype(np.int32)
        normals = special.ndtri(uniforms(words(NORMALS, length)))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True) * np.sqrt(length)
        norms = kernel.radius(uniforms(stream(seed, 0, RADII).random_raw(n_frequencies)), length)
        return cls(signs, order, normals, norms)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.signs, self.order, self.normals, self.norms

    def astype(self, dtype: DTypeLike) -> "Fastfood":
        return Fastfood(self.signs.astype(dtype), self.order, self.normals.astype(dtype), self.norms.astype(dtype))
