"""The micro cases of the gate by pytest-benchmark: `python -m pytest perf`."""

import pytest

from perf.micro import CASES

pytest.importorskip("pytest_benchmark")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_micro(benchmark, case):
    call = case.prepare()
    result = benchmark.pedantic(call, rounds=5, warmup_rounds=1)
    assert case.count(result) == case.count(call())
