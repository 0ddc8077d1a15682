"""Saved models with a replaced part: loading is refused, or all methods work with finite results."""

import os

import mutations
import pytest

SHARE = float(os.environ.get("BINFEAT_MUTATIONS", "0.002"))  # of all mutants; 1 in `.ci/hard mutations`


@pytest.fixture(scope="module")
def made():
    return {name: (model, rows) for name, model, rows in mutations.models()}


NAMES = [
    *("binning", "hashed binning", "fourier", "fastfood", "union", "ridge", "ridge classifier", "ridge of codes"),
    *("ridge of rows", "ridge of sums", "binning model", "fourier model", "exact", "compact"),
    *("local", "scaled targets", "local classifier", "labels of columns", "indicators", "frame", "embedding"),
    *("embedding of columns", "clusters", "labels", "detector", "detector of sparse rows"),
]


def test_every_kind_of_model_is_mutated(made):
    assert list(made) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_mutated_models_are_refused_or_work(made, name):
    counts, faults = mutations.outcomes(name, *made[name], SHARE)
    print(name, dict(counts))
    assert not faults, "\n".join(faults)
    assert counts["refused"] > 0
