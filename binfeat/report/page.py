"""Text and pictures of the report."""

import html
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import cast

import numpy as np
from sklearn.base import is_classifier

from binfeat._common.array_types import ArrayLike
from binfeat._common.printable import printable
from binfeat._common.validation import names_of_inputs
from binfeat._common.whole_files import require_writable, written
from binfeat.models.kernel_algebra.loss import SQUARES
from binfeat.models.kernel_algebra.solve import solve_bytes
from binfeat.models.run import decision_words
from binfeat.models.served.estimator import ServedModelBase
from binfeat.models.table.columns import RawTable
from binfeat.report import pictures
from binfeat.report.bottlenecks import Limit, limits_of
from binfeat.report.effects import Effect, effects_of, reasons_of
from binfeat.report.errors import ClassificationEvaluation, Evaluation, RegressionEvaluation

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
{sections}
</body>
</html>
"""


def write_page(model: ServedModelBase, path: str | PathLike, X: RawTable, y: ArrayLike | None) -> None:
    if (X is None) != (y is None):
        raise ValueError(f"Only {'y' if X is None else 'X'} was given. Pass both X and y, or neither.")
    require_writable(Path(path))
    evaluation = None if X is None else Evaluation.of(model, X, cast(ArrayLike, y))
    text = _page(model, evaluation)
    with written(Path(path)) as out:
        out.write(text.encode())


def _page(model: ServedModelBase, evaluation: Evaluation | None) -> str:
    names = names_of_inputs(model)
    sections = [
        _errors(model, evaluation),
        _limits(limits_of(model, evaluation)),
        _decisions(model),
        _inputs(model, evaluation, names),
        _reasons(model, evaluation, names),
        _curves(model),
        _on_test_rows(model, evaluation),
        _costs(model, evaluation),
    ]
    target = vars(model).get("_target")
    title = type(model).__name__ + (f" for {target}" if target else "")
    style = files("binfeat.report").joinpath("page.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(title), style=style, sections="\n".join(filter(None, sections)))


def escape(value: object) -> str:
    return html.escape(printable(value))


def _section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format an HTML table; a column is aligned to the right if its first value is a _Number."""

    def cell(tag: str, value: str, number: bool) -> str:
        kind = ' class="number"' if number else ""
        return f"<{tag}{kind}>{escape(value)}</{tag}>"

    numbers = [isinstance(value, _Number) for value in rows[0]]
    lines = [("th", head), *(("td", row) for row in rows)]
    body = ["<tr>" + "".join(cell(tag, *both) for both in zip(row, numbers)) + "</tr>" for tag, row in lines]
    return '<div class="wide"><table>\n' + "\n".join(body) + "\n</table></div>"


class _Number(str):
    """A formatted number."""


def _figure(caption: str, draw: Callable[..., None], *arguments: object) -> str:
    svg = pictures.drawn(draw, *arguments).replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>"


def _first(words: str, most: int, n: int) -> str:
    """Return the end of a caption that shows only the first of n things, or an empty string if it shows all."""
    return f", {words.format(most, n)}" if n > most else ""


def _grid(figures: list[str]) -> str:
    return '<div class="pictures">\n' + "\n".join(figures) + "\n</div>"


def _errors(model: ServedModelBase, evaluation: Evaluation | None) -> str:
    mean, spread = model.held_out_error_
    rows = [(f"Validation error in fit ({_criterion(model)})", _pm(mean, spread, False))]
    note = "± is one standard error. Hyperparameters minimize the validation error, so it is slightly too low."
    if evaluation is None:
        return _section("Errors", _table(("error", ""), rows), _paragraph(note, "note"))
    rows += [(measure.name, _pm(measure.value, measure.spread, measure.is_share)) for measure in evaluation.measures]
    note = (
        f"All errors except the first are measured on {len(evaluation.table):,} rows{_novelty(evaluation.seen)}. {note}"
    )
    seen = [_paragraph(_warning(evaluation.seen, len(evaluation.table)), "warning")] if evaluation.seen else []
    return _section("Errors", _table(("error", ""), rows), *seen, _paragraph(note, "note"))


def _criterion(model: ServedModelBase) -> str:
    if model.scoring is not None:
        return "negative score"
    if model.loss not in SQUARES:
        return f"mean of loss={model.loss!r}"
    return "mean squared error of the standardized targets"


def _novelty(seen: float | None) -> str:
    """Return the part of a sentence on the share of test rows that are training rows."""
    if seen is None:
        return " (if these include training rows, the errors are too low)"
    return "" if seen else " that were not used for training"


def _warning(seen: float, n_rows: int) -> str:
    share = f"{100 * seen:.3g} % of" if seen < 1 else "All"
    return (
        f"{share} the {n_rows:,} test rows are training rows, so their errors are too low. Pass rows "
        "that were not used in fit."
    )


def _pm(value: float, spread: float, is_share: bool) -> _Number:
    words = f"{value:.2%}" if is_share else f"{value:.4g}"
    if np.isfinite(spread):
        words += f" ± {spread:.2%}" if is_share else f" ± {spread:.2g}"
    return _Number(words)


def _limits(limits: list[Limit]) -> str:
    lines = []
    for limit in limits:
        kind = ' class="relevant"' if limit.is_relevant else ""
        lines.append(f"<li{kind}><b>{escape(limit.title)}.</b> {escape(limit.text)}</li>")
    return _section("Limits of the error", '<ul class="limits">\n' + "\n".join(lines) + "\n</ul>")


def _decisions(model: ServedModelBase) -> str:
    decisions = (decision_words(*row) for row in model.decisions_.tolist())
    rows = [(what, choice, _Number(error), _Number(seconds)) for what, choice, error, seconds in decisions]
    note = (
        "Each choice has the lowest leave-one-out error, or the lowest error on the validation set. Seconds are "
        "counted from the start of the fit."
    )
    parts = [_paragraph(note), _table(("decision", "choice", "error", "seconds"), rows)]
    return _section("Decisions", *parts)


def _inputs(model: ServedModelBase, evaluation: Evaluation | None, names: list[str]) -> str:
    shown = _first("the {} largest of {}", pictures.BARS, len(names))
    shares = _figure(f"Importance of the inputs{shown}", pictures.importances, model.feature_importances_, names)
    note = (
        "Importance: the square root of the increase in the mean squared leave-one-out error when the column is "
        "shuffled, in units of the target's standard deviation. Redundant columns share their importance."
    )
    if evaluation is None:
        return _section("Inputs", _paragraph(note), _grid([shares]))
    effects = effects_of(model, evaluation.table, names)
    ends = [end for found in effects for end in (found.means.min(), found.means.max())]
    span = min(ends, default=0.0), max(ends, default=1.0)
    figures = [_figure(_caption(model, found), pictures.effect, found, *span) for found in effects]
    more = (
        " Effect (partial dependence): the mean prediction as a function of one input, which has the same value in all "
        "rows. Gray bars show the distribution of the input; without bars, the effect is extrapolated."
    )
    return _section("Inputs", _paragraph(note + more), _grid([shares, *figures]))


def _caption(model: ServedModelBase, effect: Effect) -> str:
    """Return the caption of an effect, with the number of levels and labels if not all of them are shown."""
    caption = f"Effect of {effect.name}"
    if effect.kind == "categories":
        caption += _first("the {} most frequent of {} levels", len(effect.levels), len(np.unique(effect.rows)))
    if is_classifier(model) and len(effect.outputs) > 1:
        caption += _first("on the first {} of {} labels", len(effect.outputs), len(model.classes_))
    return caption


def _reasons(model: ServedModelBase, evaluation: Evaluation | None, names: list[str]) -> str:
    if evaluation is None:
        return ""
    reasons = reasons_of(model, evaluation.table)
    note = (
        f"Shapley values of {len(reasons.values):,} rows: how much each input moves {reasons.output} away from the "
        "average. The second picture shows the row with the largest difference from the average."
    )
    some = _figure("Shapley values of all rows", pictures.swarm, reasons, names)
    one = _figure("Shapley values of one row", pictures.waterfall, reasons, names)
    return _section("Explanations", _paragraph(note), _grid([some, one]))


def _curves(model: ServedModelBase) -> str:
    figures = []
    if len(model.length_scale_errors_) > 1:
        figures.append(_figure("Search for length scales", pictures.search, model.length_scale_errors_))
    if len(model.learning_curve_) > 1:
        grown = "trees" if model.n_trees_ else "grids"
        figures.append(_figure(f"Number of {grown}", pictures.growth, model.learning_curve_, grown))
    return _section("Learning curves", _grid(figures)) if figures else ""


def _on_test_rows(model: ServedModelBase, evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return ""
    if isinstance(evaluation, ClassificationEvaluation):
        right, p = evaluation.labels == evaluation.guesses, evaluation.probabilities.max(axis=1)
        pairs = evaluation.labels, evaluation.guesses, model.classes_
        shown = _first("the {} most frequent of {} labels", pictures.CELLS, len(model.classes_))
        confusion = _figure(f"Confusion matrix{shown}", pictures.confusion, *pairs)
        calibration = _figure("Calibration of the predicted label", pictures.calibration, p, right)
        return _section("Labels and probabilities", _grid([confusion, calibration]))
    figures, numbers = list[str](), cast(RegressionEvaluation, evaluation)
    for k, (y, predicted) in enumerate(zip(numbers.y.T, numbers.predicted.T)):
        suffix = f", target {k}" if numbers.y.shape[1] > 1 else ""
        figures += [
            _figure(f"Observed and predicted values{suffix}", pictures.observed, y, predicted),
            _figure(f"Residuals with median and quartiles{suffix}", pictures.residuals, y, predicted),
        ]
    return _section("Residuals", _grid(figures))


def _costs(model: ServedModelBase, evaluation: Evaluation | None) -> str:
    rows = [("Fit", _Number(f"{model.decisions_['seconds'].max():.1f} s until the last decision"))]
    rows.append(("Size of the model", _Number(f"{_bytes(vars(model)) / 1e6:,.1f} MB")))
    if model.features_ == "exact":
        n_rows = model.feature_coef_.shape[1]
        n_bytes = solve_bytes(n_rows, len(model.feature_coef_))
        rows.append(("Memory for the kernel matrix in fit", _Number(f"{n_bytes / 1e6:,.1f} MB for {n_rows:,} rows")))
    if model.features_ == "local":
        cells = model._local["starts"]
        largest = f"at most {np.diff(cells).max():,} rows each"
        rows.append(("Cells", _Number(f"{len(cells) - 1:,} in {model.n_trees_} trees, {largest}")))
    if evaluation is not None:
        rows.append(("Prediction", _Number(f"{1e6 * evaluation.seconds / len(evaluation.table):,.1f} µs per row")))
    return _section("Time and memory", _table(("", ""), rows))


def _bytes(values: Mapping[str, object]) -> int:
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else _bytes(value) if isinstance(value, dict) else 0
        for value in values.values()
    )
