"""Fits that go on from an earlier one: scaling, length scales and kernel are kept, and are not searched again."""

from dataclasses import replace
from typing import Any

import numpy as np

from binfeat._common.labels import labels_of_machine
from binfeat._fourier.features import FourierMap
from binfeat._machine.fitted.functions import ExactFunction
from binfeat._machine.kernel_algebra.matrices import is_radial
from binfeat._machine.machines.exact import Part
from binfeat._machine.machines.feature_choice import KERNELS, FeatureTrial
from binfeat._machine.search.kernel_choice import KernelChoice
from binfeat._machine.search.length_scales import LengthScales
from binfeat._machine.table.encoder import TableEncoder
from binfeat._machine.table.scalers import scaler_of
from binfeat._machine.target.targets import Targets
from binfeat.kernels import RBF, Laplacian, Matern, binning_kernel

_SAME = "features", "kernel", "gamma", "scaling", "categorical_features", "target_transform"
_KNOWN = {repr(kernel): kernel for kernel in (Laplacian(), *KERNELS, Matern(1.5), RBF())}


def fitted_with(machine):
    """What a fit has to share with the next one for that to go on from it, as an array of words."""
    names = list(getattr(machine, "feature_names_in_", []))
    columns = f"columns {machine.n_features_in_} {names}"
    return np.array([columns, *(f"{name}={_words(getattr(machine, name, None))}" for name in _SAME)])


def _words(value):
    return repr(np.asarray(value).tolist() if isinstance(value, np.ndarray) else value)


class Earlier:
    """What a machine has decided in its earlier fit.

    Parameters
    ----------
    machine : KernelMachineRegressor or KernelMachineClassifier
        Fitted; its attributes are read before the next fit sets them.

    Attributes
    ----------
    encoder : TableEncoder
    scaling : str
    scaler : InputScaler or None
    features : {"exact", "binning", "fourier", "hybrid"}
    n_grids : int
    error : float
    history : tuple of ndarray
        Errors and gammas of the search.
    """

    def __init__(self, machine):
        self._machine = machine
        self.encoder, self.scaling = TableEncoder.from_arrays(machine._columns), machine.scaling_
        self.scaler = scaler_of(machine)
        self.features, self.n_grids, self._alpha = machine.features_, machine.n_grids_, machine.alpha_
        self.error, self.history = machine.held_out_error_[0], (machine.width_errors_, machine.width_gammas_)
        self._gamma, self._name = machine.gamma_, machine.kernel_
        self._linear_map = machine.rotation_
        self._exact: Any = None
        self._frequencies: Any = None
        if self.is_exact:
            self._exact = ExactFunction.from_arrays({**machine._exact, "coef": machine.feature_coef_})
        else:
            self._frequencies = machine._frequencies

    @classmethod
    def of(cls, machine, decisions):
        """That of a machine with `warm_start`, or None, which is noted, if there is none to go on from.

        ValueError if the columns of the table are others.
        """
        if not (machine.warm_start and hasattr(machine, "feature_coef_")):
            return None
        before, now = machine._fitted_with, fitted_with(machine)
        if before[0] != now[0]:
            raise ValueError(
                f"warm_start=True needs the columns of the earlier fit, {before[0]}; got {now[0]}. Set it to False to "
                "search anew."
            )
        changed = [words.partition("=")[0] for words, other in zip(now, before) if words != other]
        if changed:
            decisions.note("warm start", f"none: {', '.join(changed)} changed", np.nan)
            return None
        return cls(machine)

    @property
    def is_exact(self):
        """Whether the machine is made of kernel values."""
        return self.features == "exact"

    def targets(self, fresh):
        """The targets of the earlier fit, for those that a new one would have; ValueError if y is of another kind."""
        if not isinstance(fresh, Targets):
            known = labels_of_machine(self._machine)
            if type(known) is not type(fresh) or not np.array_equal(known.classes, fresh.classes):
                raise ValueError(_others("classes", known.classes.tolist(), fresh.classes.tolist()))
            return known
        known = Targets.of_machine(self._machine)
        if (known.flat, known.mean.shape) != (fresh.flat, fresh.mean.shape):
            raise ValueError(_others("number of targets", known.mean.size, fresh.mean.size))
        return replace(known, shifts=np.zeros_like(fresh.shifts))

    def hinders(self, takes_exact, may_mix, fourier_bytes, n_rows):
        """Why the features of the earlier fit do not suit these rows, or None."""
        if self.is_exact and not takes_exact:
            return "rows are too many for an exact machine"
        if takes_exact and not self.is_exact:
            return "rows are so few that the machine is exact"
        if self.features == "hybrid" and not may_mix:
            return "rows are beyond memory"
        if self.features != "exact" and may_mix and 8 * self._n_fourier * n_rows > fourier_bytes:
            return "rows are too many for Fourier features"
        return None

    @property
    def _n_fourier(self):
        return 2 * self._frequencies.shape[1] if self._frequencies.size else 0

    def scales(self, problem):
        """Kernels with their length scales: those of the grids first, or those of an exact machine's sum."""
        alpha, rest = self._alpha / problem.mean_weight, (self.error, 0, 0)
        if not self.is_exact:
            kernel = self._kernel(problem)
            return [LengthScales(kernel, self._gamma**kernel.power, alpha, *rest, self._linear_map)]
        function, rest = self._exact, (self.error, self._exact.support.shape[1], 0)
        linear_maps = [function.linear_map if is_radial(kernel) else None for kernel in function._kernels]
        return [
            LengthScales(kernel, gamma / function.unit**kernel.power, alpha, *rest, linear_map)
            for kernel, gamma, linear_map in zip(function._kernels, function.gammas, linear_maps)
        ]

    def parts(self, problem):
        """The sum of kernels of an exact machine, and its penalty."""
        scales = self.scales(problem)
        return [Part(own, 1.0, share) for own, share in zip(scales, self._exact.shares)], scales[0].alpha

    def trial(self, problem):
        """The features of a machine that is not exact, and their kernel and gamma."""
        (scales,) = self.scales(problem)
        fourier = FourierMap(self._frequencies, n_jobs=problem.n_jobs) if self._n_fourier else None
        alpha = float(problem.penalties(np.array([self._alpha]))[0])
        return FeatureTrial(self.features, np.array([self.error]), alpha, fourier, scales), scales.kernel, scales.gamma

    def _kernel(self, problem):
        given = problem.machine.kernel
        is_own = self.features == "fourier" or (isinstance(given, str) and given == "auto")
        return _KNOWN[self._name] if is_own else binning_kernel(given)


class KnownKernels(KernelChoice):
    """Stands for the search of scaling and length scales where they are those of an earlier fit."""

    learns = False

    def __init__(self, problem):
        super().__init__(problem, set(), set())

    def run(self):
        earlier = self._problem.earlier
        self._take(earlier.scaling, earlier.scaler)
        self.found = earlier.scales(self._problem)
        self._problem.decisions.note("warm start", "scaling, length scales and kernel", earlier.error)

    def settle(self, problem):
        return bool(self.found)

    def history(self, scales):
        return self._problem.earlier.history


def _others(what, before, now):
    return f"warm_start=True needs the {what} of the earlier fit, {before}; got {now}. Set it to False to search anew."
