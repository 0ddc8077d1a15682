"""The page: text and pictures of a fitted machine."""

import html
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier

from binfeat._common.printable import printable
from binfeat._common.whole_files import require_writable, written
from binfeat.models.kernel_algebra.bounded import BOUNDED_LOSSES
from binfeat.models.kernel_algebra.solve import solve_bytes
from binfeat.models.run import decision_words
from binfeat.models.target.deviance import DEVIANCES
from binfeat.report import pictures
from binfeat.report.bottlenecks import limits_of
from binfeat.report.effects import effects_of
from binfeat.report.errors import Judged
from binfeat.report.reasons import reasons_of

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


def write_page(machine, path, X, y):
    """Write the page of a fitted machine; see `Reporting.report`."""
    if (X is None) != (y is None):
        raise ValueError(f"X and y must both be given, or both be None; got {'y' if X is None else 'X'} alone.")
    require_writable(Path(path))
    judged = None if X is None else Judged.of(machine, X, y)
    text = _page(machine, judged)
    with written(Path(path)) as out:
        out.write(text.encode())


def _page(machine, judged):
    names = list(getattr(machine, "feature_names_in_", [f"x{j}" for j in range(machine.n_features_in_)]))
    sections = [
        _errors(machine, judged),
        _limits(limits_of(machine, judged)),
        _decisions(machine),
        _inputs(machine, judged, names),
        _reasons(machine, judged, names),
        _curves(machine),
        _on_test_rows(machine, judged),
        _costs(machine, judged),
    ]
    target = vars(machine).get("_target")
    title = type(machine).__name__ + (f" of {target}" if target else "")
    style = files("binfeat.report").joinpath("page.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(title), style=style, sections="\n".join(filter(None, sections)))


def escape(value):
    """A value as text of the page."""
    return html.escape(printable(value))


def _section(title, *parts):
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _paragraph(text, kind=""):
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _table(head, rows):
    """An HTML table; a column whose first value is a _Number is aligned to the right."""

    def cell(tag, value, number):
        kind = ' class="number"' if number else ""
        return f"<{tag}{kind}>{escape(value)}</{tag}>"

    numbers = [isinstance(value, _Number) for value in rows[0]]
    lines = [("th", head), *(("td", row) for row in rows)]
    body = ["<tr>" + "".join(cell(tag, *both) for both in zip(row, numbers)) + "</tr>" for tag, row in lines]
    return '<div class="wide"><table>\n' + "\n".join(body) + "\n</table></div>"


class _Number(str):
    """A formatted number, which a table aligns to the right."""


def _figure(caption, draw, *arguments):
    svg = pictures.drawn(draw, *arguments).replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>"


def _first(words, most, n):
    """In words for the end of a caption: that of n things so many are shown, if these are not all."""
    return f", {words.format(most, n)}" if n > most else ""


def _grid(figures):
    return '<div class="pictures">\n' + "\n".join(figures) + "\n</div>"


def _errors(machine, judged):
    mean, spread = machine.held_out_error_
    rows = [(f"Error of rows left out, in the fit: {_judge(machine)}", _pm(mean, spread, False))]
    note = (
        "± is one standard error. The choices were made by the error in the fit, which is therefore a little too low."
    )
    if judged is None:
        return _section("Errors", _table(("error", ""), rows), _paragraph(note, "note"))
    rows += [(measure.name, _pm(measure.value, measure.spread, measure.is_share)) for measure in judged.measures]
    note = f"All but the first were measured on {len(judged.table):,} rows{_novelty(judged.seen)}. {note}"
    seen = [_paragraph(_warning(judged), "warning")] if judged.seen else []
    return _section("Errors", _table(("error", ""), rows), *seen, _paragraph(note, "note"))


def _judge(machine):
    """What choices were made by."""
    if machine.scoring is not None:
        return "minus the scoring"
    if machine.loss in (*DEVIANCES, *BOUNDED_LOSSES):
        return f"mean of loss={machine.loss!r}"
    return "mean squared error of the standardised targets"


def _novelty(seen):
    """What is known of rows of which this share are rows of `fit`."""
    if seen is None:
        return "; whether fit had seen them, so that errors are too low, is not known"
    return "" if seen else " that the machine had not seen"


def _warning(judged):
    share = f"{100 * judged.seen:.3g} % of" if judged.seen < 1 else "All of"
    return (
        f"{share} these {len(judged.table):,} rows are rows of fit, targets included: what is measured on them is too "
        "low. Give the report rows that the machine has not seen."
    )


def _pm(value, spread, is_share):
    words = f"{value:.2%}" if is_share else f"{value:.4g}"
    if np.isfinite(spread):
        words += f" ± {spread:.2%}" if is_share else f" ± {spread:.2g}"
    return _Number(words)


def _limits(limits):
    lines = []
    for limit in limits:
        kind = ' class="counts"' if limit.counts else ""
        lines.append(f"<li{kind}><b>{escape(limit.what)}.</b> {escape(limit.says)}</li>")
    return _section("What limits the error", '<ul class="limits">\n' + "\n".join(lines) + "\n</ul>")


def _decisions(machine):
    decisions = (decision_words(*row) for row in machine.decisions_.tolist())
    rows = [(what, choice, _Number(error), _Number(seconds)) for what, choice, error, seconds in decisions]
    note = "Each choice has the lowest error on held-out rows, or of leave-one-out predictions, after these seconds."
    parts = [_paragraph(note), _table(("decision", "choice", "error", "seconds"), rows)]
    return _section("What was decided", *parts)


def _inputs(machine, judged, names):
    shown = _first("the {} largest of {}", pictures.BARS, len(names))
    shares = _figure(f"Importance of the inputs{shown}", pictures.importances, machine.feature_importances_, names)
    note = (
        "The importance of an input is the root of what the mean squared error of rows left out rises by when its "
        "values are shuffled, in standard deviations of what is learned. Inputs that say the same share it."
    )
    if judged is None:
        return _section("Inputs", _paragraph(note), _grid([shares]))
    effects = effects_of(machine, judged.table, names)
    ends = [end for found in effects for end in (found.means.min(), found.means.max())]
    span = min(ends, default=0.0), max(ends, default=1.0)
    figures = [_figure(_caption(machine, found), pictures.effect, found, *span) for found in effects]
    more = (
        " An effect is the mean prediction of some rows if all of them had the same value of the input (partial "
        "dependence). Grey bars show how the values are spread: where there are none, nothing is known."
    )
    return _section("Inputs", _paragraph(note + more), _grid([shares, *figures]))


def _caption(machine, effect):
    """Of an effect: what it is of, and which levels and labels it is not of."""
    caption = f"Effect of {effect.name}"
    if effect.kind == "categories":
        caption += _first("the {} most frequent of {} levels", len(effect.levels), len(np.unique(effect.rows)))
    if is_classifier(machine) and len(effect.outputs) > 1:
        caption += _first("on the first {} of {} labels", len(effect.outputs), len(machine.classes_))
    return caption


def _reasons(machine, judged, names):
    if judged is None:
        return ""
    reasons = reasons_of(machine, judged.table)
    note = (
        f"Shapley values of {len(reasons.values):,} rows: what each input adds to {reasons.what}, from the mean of "
        "rows whose inputs are drawn one by one, to the row's own. Second: the row that is farthest from that mean."
    )
    some = _figure("What inputs add, row by row", pictures.swarm, reasons, names)
    one = _figure("One row, step by step", pictures.waterfall, reasons, names)
    return _section("Reasons", _paragraph(note), _grid([some, one]))


def _curves(machine):
    figures = []
    if len(machine.length_scale_errors_) > 1:
        figures.append(_figure("Search for length scales", pictures.search, machine.length_scale_errors_))
    if len(machine.learning_curve_) > 1:
        grown = "trees" if machine.n_trees_ else "grids"
        figures.append(_figure(f"Growth of the {grown}", pictures.growth, machine.learning_curve_, grown))
    return _section("How it learned", _grid(figures)) if figures else ""


def _on_test_rows(machine, judged):
    if judged is None:
        return ""
    if is_classifier(machine):
        right, p = judged.labels == judged.guesses, judged.probabilities.max(axis=1)
        pairs = judged.labels, judged.guesses, machine.classes_
        shown = _first("the {} most frequent of {} labels", pictures.CELLS, len(machine.classes_))
        confusion = _figure(f"Labels, observed and predicted{shown}", pictures.confusion, *pairs)
        calibration = _figure("How often the predicted label is right", pictures.calibration, p, right)
        return _section("Labels and probabilities", _grid([confusion, calibration]))
    figures = []
    for k, (y, predicted) in enumerate(zip(judged.y.T, judged.predicted.T)):
        suffix = f", target {k}" if judged.y.shape[1] > 1 else ""
        figures += [
            _figure(f"Observed and predicted{suffix}", pictures.observed, y, predicted),
            _figure(f"Residuals, with median and quartiles{suffix}", pictures.residuals, y, predicted),
        ]
    return _section("Residuals", _grid(figures))


def _costs(machine, judged):
    rows = [("Fit", _Number(f"{machine.decisions_['seconds'].max():.1f} s until the last decision"))]
    rows.append(("Arrays of the machine", _Number(f"{_bytes(vars(machine)) / 1e6:,.1f} MB")))
    if machine.features_ == "exact":
        n_rows = machine.feature_coef_.shape[1]
        n_bytes = solve_bytes(n_rows, len(machine.feature_coef_))
        rows.append(("Kernel matrix and solution in the fit", _Number(f"{n_bytes / 1e6:,.1f} MB, {n_rows:,} rows")))
    if machine.features_ == "local":
        cells = machine._local["starts"]
        largest = f"{np.diff(cells).max():,} rows at most"
        rows.append(("Cells", _Number(f"{len(cells) - 1:,} of {machine.n_trees_} trees, of {largest}")))
    if judged is not None:
        rows.append(("Prediction", _Number(f"{1e6 * judged.seconds / len(judged.table):,.1f} µs for each row")))
    return _section("Time and memory", _table(("", ""), rows))


def _bytes(values):
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else _bytes(value) if isinstance(value, dict) else 0
        for value in values.values()
    )
