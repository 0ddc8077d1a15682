"""The paper's Table 1: Fourier + LS and Binning + LS on its data sets, with exact models and the paper's figures."""

from time import perf_counter

import numpy as np
from sklearn.base import clone

from perf import exact, tasks
from perf.choice import FOURIER, LEARNED_BINNING, LEARNED_FOURIER, ONE_GAMMA, describe, quiet, scaled
from perf.data import Split, seeded_split
from perf.measure import Times
from perf.paper import TABLE_1
from perf.peers import trial
from perf.record import Row
from perf.suite import guarded, names_among
from perf.text_tables import markdown_table

METHODS = (FOURIER, LEARNED_FOURIER, ONE_GAMMA, LEARNED_BINNING)
QUICK_TASKS, QUICK_ROWS, QUICK_STEP = ("CPU", "Adult"), 600, 9
WARM_UP_ROWS = 2_000
DRAWS = 3  # of the random features, if the data have one split
ONCE = {("Forest Cover", FOURIER.name), ("Forest Cover", LEARNED_FOURIER.name)}  # minutes each
ERRORS = {  # goals, in percent
    ("CPU", FOURIER.name): 3.6,
    ("CPU", LEARNED_FOURIER.name): 3.6,
    ("CPU", ONE_GAMMA.name): 5.3,
    ("CPU", LEARNED_BINNING.name): 5.3,
    ("Adult", FOURIER.name): 14.9,
    ("Adult", LEARNED_FOURIER.name): 14.9,
    ("Adult", ONE_GAMMA.name): 15.3,
    ("Adult", LEARNED_BINNING.name): 15.3,
    ("Forest Cover", FOURIER.name): 11.6,
    ("Forest Cover", LEARNED_FOURIER.name): 11.6,
    ("Forest Cover", ONE_GAMMA.name): 4.5,
    ("Forest Cover", LEARNED_BINNING.name): 2.3,
}
TIMES_FASTER = {"fourier": 10, "binning": 100}
OTHER_DATA = ("Census", "KDDCUP99")  # differ from the paper's: without goals


LONG = True
NARROWING = ("only", "column")


def parts(content):
    """Return the tables of the page: all methods compared with the paper, and models without random features."""
    rows = {row.what: row for row in map(Row.from_dict, content["rows"])}
    return {"methods": _beside_the_paper(rows), "others": _without_features(rows)}


def _beside_the_paper(rows):
    lines = []
    for name, paper in TABLE_1.items():
        cells = [_cell(rows, name, method) for method in METHODS]
        published = [f"{own.error:g} %, {own.seconds:,} s" for own in (paper.fourier, paper.binning)]
        lines.append((name, *cells[:2], published[0], *cells[2:], published[1]))
    names = [method.name for method in METHODS]
    return markdown_table(("data", *names[:2], "the paper", *names[2:], "the paper"), lines)


def _cell(rows, name, method):
    """Return error, its standard deviation over splits or draws, seconds, and the paper's seconds divided by them."""
    starts = tuple(f"{name}, {method.name}, {size} = " for size in "DP")
    own = {what.rpartition(", ")[2]: row.cells for what, row in rows.items() if what.startswith(starts)}
    _, error, *_ = own["error / the paper's"]
    _, seconds, _, faster, *_ = own["training / the paper's in 2007"]
    _, deviation, *_ = own.get("standard deviation over splits or draws", ("", ""))
    return f"{error}{deviation and f' (± {deviation})'}, {seconds}, {faster}"


def _without_features(rows):
    lines = []
    for what, row in rows.items():
        if what.endswith(" rows, error"):
            training = rows[what.removesuffix("error") + "training"]
            lines.append((*what.split(", ")[:3], row.cells[1], training.cells[1]))
    return markdown_table(("data", "model", "training rows", "error", "training"), lines)


def add_options(parser):
    """Add options that narrow the case; such a run is not recorded."""
    group = parser.add_argument_group("options of table1")
    data = names_among(tasks.LOADERS)
    group.add_argument("--only", type=data, metavar="DATA,...", help=f"only these of {', '.join(tasks.LOADERS)}")
    group.add_argument("--column", choices=("fourier", "binning"), help="only these features, and no exact models")


def run(quick, only=None, column=None, of_part=guarded, loaders=tasks.LOADERS, methods=METHODS, quick_rows=QUICK_ROWS):
    for name in only or (QUICK_TASKS if quick else loaders):
        yield from of_part(name, _of_name, loaders[name], quick_rows if quick else None, column, methods)


def _of_name(load, quick_rows, column, methods):
    task = load()
    return (
        of_task(task.quick(quick_rows), QUICK_STEP, column, methods)
        if quick_rows
        else of_task(task, 1, column, methods)
    )


def of_task(task, step=1, column=None, methods=METHODS):
    """Yield the rows of one data set; `step` above 1 skips candidates, `column` selects its features."""
    yield Row(f"{task.name}: {task.deviation}", len(task.splits[0].y), unit="rows")
    methods = [method for method in methods if column in (None, method.column)]
    for method in methods:
        published = getattr(TABLE_1[task.name], method.column)
        start = perf_counter()
        models = [method.choose(split.X, split.y, published.size, step) for split in task.splits]
        seconds = perf_counter() - start
        yield from _of_method(task, method, models, published)
        yield Row(f"{task.name}, {method.name}, choosing ({describe(models[0])})", seconds)
        if method is methods[0]:
            scalers = [model.get_params()["scale"] for model in models]
    if column is None:
        yield from _of_exact(task, scalers)
    for name, own in TABLE_1[task.name].others.items():
        yield Row(f"{task.name}, {name} in the paper, error", None, own.error, unit="%")
        yield Row(f"{task.name}, {name} in the paper, training", None, own.seconds)


def _of_method(task, method, models, paper):
    """Yield the mean error and the fastest training of a method, over splits or draws of the features."""
    what = f"{task.name}, {method.name}, {'D' if method.column == 'fourier' else 'P'} = {paper.size}"
    draws = 1 if len(task.splits) > 1 or (task.name, method.name) in ONCE else DRAWS
    pairs = [(model, split, seed) for model, split in zip(models, task.splits) for seed in range(draws)]
    with quiet():  # most of a few rows are alone in their bins
        trial(clone(models[0]), task.splits[0].quick(min(WARM_UP_ROWS, len(task.splits[0].y) // 2)))
    trials = [trial(clone(model).set_params(features__random_state=seed), split) for model, split, seed in pairs]
    errors = np.array([done.error for done in trials])
    reach = ERRORS.get((task.name, method.name))
    if reach is not None:
        yield Row(f"{what}, error", errors.mean(), reach=("<=", reach), unit="%")
    yield Row(f"{what}, error / the paper's", errors.mean(), paper.error, unit="%")
    if len(errors) > 1:
        yield Row(f"{what}, error, standard deviation over splits or draws", errors.std(ddof=1), unit="points")
    judged = None if task.name in OTHER_DATA else (">=", TIMES_FASTER[method.column])
    times = Times(tuple(done.seconds for done in trials))
    yield Row(f"{what}, training / the paper's in 2007", times, float(paper.seconds), judged)


def _of_exact(task, scalers):
    """Yield models without random features, on the same splits with the same scaling."""
    results = {}
    for split, scaler in zip(task.splits, scalers):
        rows = seeded_split(split.X, split.y, len(split.y), 0)  # shuffled: a table can be sorted by class
        for name, model, grid, n_rows in exact.models(scaler, scaled(scaler, rows.X), task.is_regression):
            best = exact.chosen(model, grid, rows.X, rows.y)
            own = Split(rows.X[:n_rows], rows.y[:n_rows], split.X_test, split.y_test)
            results.setdefault((name, len(own.y)), []).append(trial(best, own))
    for (name, n_rows), trials in results.items():
        what = f"{task.name}, {name}, {n_rows:,} of {len(task.splits[0].y):,} rows"
        yield Row(f"{what}, error", float(np.mean([done.error for done in trials])), unit="%")
        yield Row(f"{what}, training", Times(tuple(done.seconds for done in trials)))
