"""Arbitrary arguments of displays, kernels and unions: a result, or an error that names the cause."""

import os
import re

import numpy as np
import pytest
import tables
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from outcomes import OF_A_TABLE, outcome
from tables import ROWS

import binfeat
from binfeat import kernels

LISTS = st.sampled_from([*tables.NASTY, [0.5, 0.25], [[0.1, 0.2], [0.3, 0.4]], ["a", "b"], [-0.0, np.nan]])


@pytest.fixture(scope="module")
def binning():
    return binfeat.RandomBinning(gamma=0.3, n_grids=5, random_state=0).fit(ROWS)


def drawn(draw):
    """Draw the figure, too, because errors can occur then."""
    display = draw()
    display.figure_.draw_without_rendering()
    return display


@given(LISTS, LISTS, st.sampled_from([1, 2, 20]) | st.sampled_from(tables.NASTY))
def test_relevances_of_any_kind(relevances, names, most):
    def draw():
        return binfeat.RelevanceDisplay(relevances, names).plot(Figure().subplots(), max_features=most)

    outcome(lambda: drawn(draw), "relevances|feature_names|max_features")


@given(LISTS, LISTS)
def test_learning_curves_of_any_kind(x, error):
    outcome(lambda: drawn(lambda: binfeat.LearningCurveDisplay(x, error).plot(Figure().subplots())), "x|error")


@given(LISTS, LISTS)
def test_errors_of_any_kind(exact, approximate):
    def draw():
        return binfeat.KernelErrorDisplay(exact, approximate).plot(Figure().subplots())

    outcome(lambda: drawn(draw), "exact|approximate")


@pytest.mark.parametrize("parameter", ["kernel", "gamma", "n_pairs", "random_state"])
def test_parameters_of_kernel_errors(binning, parameter):
    for value in tables.NASTY if "BINFEAT_HARD" in os.environ else tables.NASTY[::5]:
        options = {"kernel": kernels.Laplacian(), parameter: value, "ax": Figure().subplots()}
        outcome(
            lambda own=options: binfeat.KernelErrorDisplay.from_estimator(binning, ROWS, **own), f"{parameter}|[Ss]eed"
        )


@given(table=tables.wild_tables())
def test_kernel_errors_take_or_refuse_anything(binning, table):
    def draw():
        return binfeat.KernelErrorDisplay.from_estimator(binning, table, ax=Figure().subplots())

    outcome(draw, documented=["X has feature names, but RandomBinning"])


KERNELS = [
    *(kernels.Laplacian(), kernels.Hat(), kernels.GammaPitch(1.5), kernels.GammaPitch(np.inf), kernels.Cauchy()),
    *(kernels.RBF(), kernels.Matern(0.5), kernels.Matern(np.inf), kernels.Skip(kernels.Laplacian(), 0.3)),
    kernels.Product(lambda t: 1 / (1 + t)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda own: str(own).partition("<")[0])
@given(tables.arrays(finite=False), tables.wild_tables() | st.none(), st.sampled_from([1.0, 1e300, *tables.NASTY]))
def test_kernel_matrices_take_or_refuse_anything(kernel, table, other, gamma):
    K = outcome(lambda: kernel(table, other, gamma=gamma), re.compile(OF_A_TABLE.pattern + r"|\bY\b|gamma"))
    if K is not None:
        assert ((K >= 0) & (K <= 1)).all()
        assert other is not None or (K.diagonal() == 1).all()


UNION = {"bins": binfeat.RandomBinning(gamma=1.0, n_grids=3), "waves": binfeat.RandomFourier(n_components=4, gamma=1.0)}


@pytest.mark.parametrize("parameter", ["transformers", "weights", "sparse_output"])
def test_parameters_of_unions(parameter):
    for value in [*tables.NASTY, [1.0, 2.0], [1.0, -2.0], [("a", None), ("a", 3)], [("a", 1, 2)], [(1, UNION["bins"])]]:
        union = binfeat.RandomFeatureUnion(**{"transformers": list(UNION.items()), parameter: value})
        outcome(lambda own=union: own.fit_transform(ROWS), parameter)
