"""Docstrings agree with signatures."""

import doctest
import inspect
import re

import numpy
import pytest

import binfeat
import binfeat.distributed
from binfeat import kernels

PLACES = (binfeat, binfeat.distributed, kernels)
CALLS = [call for place in PLACES for name in place.__all__ if callable(call := getattr(place, name))]
METHODS = [
    method
    for call in CALLS
    if inspect.isclass(call)
    for name, method in inspect.getmembers(call, callable)
    if not name.startswith("_") and (method.__module__ or "").startswith("binfeat")
]
ESTIMATORS = [call for call in CALLS if inspect.isclass(call) and hasattr(call, "fit")]
MACHINES = [
    (binfeat.KernelMachineRegressor, binfeat.KernelMachineClassifier),
    (binfeat.CGRidge, binfeat.CGRidgeClassifier),
]
ON_DASK = [  # classes with parameters in the docstring of the class for rows in memory
    (binfeat.CGRidge, binfeat.distributed.CGRidge),
    (binfeat.CGRidgeClassifier, binfeat.distributed.CGRidgeClassifier),
    (binfeat.KernelMachineRegressor, binfeat.distributed.KernelMachineRegressor),
    (binfeat.KernelMachineClassifier, binfeat.distributed.KernelMachineClassifier),
    (binfeat.OutlierDetector, binfeat.distributed.OutlierDetector),
    (binfeat.RandomBinning, binfeat.distributed.RandomBinning),
    (binfeat.RandomFourier, binfeat.distributed.RandomFourier),
]
PAIRS = [
    *MACHINES,
    *((one.fit, other.fit) for one, other in MACHINES),
    *((one.predict, other.predict) for one, other in MACHINES),
    (binfeat.SpectralEmbedding, binfeat.SpectralClustering),
    (binfeat.SpectralEmbedding, binfeat.LabelSpreading),
]
REFERRING = [on_dask for _, on_dask in ON_DASK]
DOCUMENTED = [call for call in CALLS if call not in REFERRING]
DOCUMENTED += [method for method in METHODS if re.search(r"^\s*Parameters$", method.__doc__ or "", re.MULTILINE)]
DIFFERENT = {
    "solver_params",
    "coef_",
    "intercept_",
    "loss",
    "solver_",
    "y",
}  # in pairs of models, one for numbers and one for labels
SOLVERS = {"tol", "max_iter", "n_iter_"}  # of eigenvectors or of a linear system


def name_of(call):
    return f"{call.__module__}.{call.__qualname__}"


def stated(docstring):
    """Return the documented defaults by parameter."""
    found = {}
    for line in re.findall(r"^([\w, ]+ : .*default=.*)$", inspect.cleandoc(docstring or ""), re.MULTILINE):
        names, _, rest = line.partition(" : ")
        found.update(dict.fromkeys(names.split(", "), rest.partition("default=")[2]))
    return found


def entries(docstring, title):
    """Return the text of each entry of a section, by name."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    section = parts[parts.index(title) + 1] if title in parts else ""
    found = re.split(r"^([\w*][\w, *]*)(?=$| :)", section.rstrip(), flags=re.MULTILINE)
    return {
        name: text.rstrip()
        for names, text in zip(found[1::2], found[2::2])
        for name in names.replace("*", "").split(", ")
    }


@pytest.mark.hard
@pytest.mark.parametrize("call", [call for call in CALLS if call.__module__ == "binfeat"], ids=name_of)
def test_examples_of_classes_that_name_the_package_as_their_module(call):
    """A complete run collects them from `binfeat`; `pytest binfeat` does not."""
    runner = doctest.DocTestRunner()
    tests = [test for test in doctest.DocTestFinder().find(call, module=False, globs={}) if test.examples]
    assert tests
    for test in tests:
        runner.run(test)
    assert runner.summarize().failed == 0


@pytest.mark.parametrize("call", [*CALLS, *METHODS], ids=name_of)
def test_defaults_are_those_of_the_docstring(call):
    parameters = inspect.signature(call).parameters
    for name, value in stated(call.__doc__).items():
        assert name in parameters, name
        default = parameters[name].default
        assert default == eval(value, {"numpy": numpy}), name


@pytest.mark.parametrize("call", [*CALLS, *METHODS], ids=name_of)
def test_annotations_print_in_a_line(call):
    """NumPy's `ArrayLike` prints as 300 characters in `help` and in editors."""
    signature = inspect.signature(call)
    kinds = [parameter.annotation for parameter in signature.parameters.values()] + [signature.return_annotation]
    printed = [inspect.formatannotation(kind) for kind in kinds if kind is not inspect.Signature.empty]
    assert max(map(len, printed), default=0) <= 90


@pytest.mark.parametrize("call", DOCUMENTED, ids=name_of)
def test_parameters_are_those_of_the_signature_in_its_order(call):
    assert list(entries(call.__doc__, "Parameters")) == [
        name for name in inspect.signature(call).parameters if name != "self"
    ]


@pytest.mark.parametrize("model", MACHINES[0], ids=name_of)
def test_class_docstrings_of_kernel_models_are_short(model):
    lines = inspect.getdoc(model).splitlines()
    notes = lines[lines.index("Notes") + 2 :]
    titles = [place for place, line in enumerate(notes) if re.fullmatch("-+", line)]
    assert len(lines) <= 120
    assert titles[0] - 2 <= 25


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{name_of(pair[0])}-{name_of(pair[1])}")
def test_shared_parameters_and_attributes_have_one_text(pair):
    for title in ("Parameters", "Attributes"):
        first, second = (entries(call.__doc__, title) for call in pair)
        shared = (first.keys() & second.keys()) - (DIFFERENT if pair[0].__qualname__ != pair[1].__qualname__ else set())
        shared -= SOLVERS if binfeat.LabelSpreading in pair else set()
        assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


@pytest.mark.parametrize("pair", ON_DASK, ids=lambda pair: name_of(pair[1]))
def test_class_on_dask_refers_to_the_class_with_the_same_parameters(pair):
    in_memory, on_dask = pair
    assert inspect.signature(in_memory) == inspect.signature(on_dask)
    assert f"`binfeat.{in_memory.__name__}`" in on_dask.__doc__ or f"binfeat.{in_memory.__name__} :" in on_dask.__doc__


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_type_checkers_know_the_attributes(estimator):
    declared = {name for home in estimator.__mro__ for name in vars(home).get("__annotations__", {})}
    known = declared | {name for name, value in inspect.getmembers(estimator) if isinstance(value, property)}
    assert known >= entries(estimator.__doc__, "Attributes").keys()


@pytest.mark.parametrize("call", [binfeat.LabelSpreading, binfeat.SpectralClustering, binfeat.SpectralEmbedding])
def test_help_of_graph_estimators_shows_short_types(call):
    methods = [method for name, method in inspect.getmembers(call, callable) if method in METHODS]
    texts = [str(own) for each in (call, *methods) for own in inspect.signature(each).parameters.values()]
    assert not [text for text in texts if len(text) > 80]
