"""Names in displays and pictures are drawn without mathematics and control characters, and never truncated."""

import numpy as np
import pytest
from hard import easy

from binfeat import (
    IntervalDisplay,
    KernelMachineClassifier,
    LearningCurveDisplay,
    RelevanceDisplay,
    ShapleyDisplay,
)

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.cbook import is_math_text  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from binfeat._common.drawing import as_text  # noqa: E402
from binfeat.report import effects, pictures  # noqa: E402

NAMES = ["price $, cost $", "$x_{$", "$$", r"a\$b$c", "evil\u202egnp\x1b[31m", "half \udc80"]
SHOWN = ["price $, cost $", "$x_{$", "$$", r"a\$b$c", r"evil\u202egnp\x1b[31m", r"half \udc80"]


def displays():
    """Yield each display with these names wherever it accepts names."""
    values = np.arange(1.0, 13.0).reshape(2, 6)
    yield RelevanceDisplay(values[0], feature_names=NAMES)
    yield ShapleyDisplay(values, [0.0, 0.0], feature_names=NAMES)
    for name in NAMES:
        yield IntervalDisplay([1.0], [1.0], [[0.0, 2.0]], x_name=name)
        yield LearningCurveDisplay(values[0], values[0], x_labels=NAMES, x_name=name, error_name=name)


def texts_of(figure):
    """Return all texts of a figure as they are drawn."""
    figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
    assert not any(map(is_math_text, texts))
    return [text.replace(r"\$", "$") for text in texts]


def test_names_in_displays_are_text():
    for display in displays():
        found = texts_of(display.plot(ax=Figure(figsize=(20, 20)).subplots()).figure_)
        assert set(SHOWN) <= set(found) or set(SHOWN) & set(found), type(display)
        assert all(character.isprintable() or character == "\n" for text in found for character in text)


def test_names_in_both_kinds_of_shapley_displays():
    display = ShapleyDisplay(np.ones((2, 6)), [0.0, 0.0], feature_names=NAMES)
    for kind in ("swarm", "waterfall"):
        assert set(SHOWN) <= set(texts_of(display.plot(kind, ax=Figure(figsize=(20, 20)).subplots()).figure_))


def test_names_where_mathematics_are_off():
    with matplotlib.rc_context({"text.parse_math": False}):
        assert as_text("$a$") == "$a$"
    assert as_text("$a$") == r"\$a\$"


def test_names_of_a_model(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["$x_{$", "$$"])
    given = {"features": "binning", "gamma": "scale", "alpha": 0.1, "solver_params": {"n_grids": 5}, "random_state": 0}
    model = KernelMachineClassifier(**given).fit(frame, np.where(frame["$$"] > 0, "$a$", "$b$"))
    found = texts_of(RelevanceDisplay.from_estimator(model, ax=Figure().subplots()).figure_)
    assert {"$x_{$", "$$"} <= set(found)


LONG = [*NAMES, "W" * 40, "_under", "_" + "w" * 40, "größe in m², " * 4, "a\nb"]


def drawn_pictures():
    rng = np.random.default_rng(0)
    values = 1e3 * rng.normal(size=(60, len(LONG)))
    reasons = effects.Reasons(values, np.full(60, -1.2345e-100), values, "predictions")
    rows = rng.integers(0, 10, size=60)
    labels = LONG[6], LONG[8], "$a$", "d"
    means = rng.normal(size=(10, 4))
    levels = effects.Effect(
        LONG[6], "categories", np.arange(10), LONG[:10], means, f"probability of {LONG[6]}", [*labels], rows
    )
    days = np.linspace(20_000, 20_400, 10)
    dates = effects.Effect("when", "dates", days, [], 1e9 * means[:, :1], "prediction", ["a"], days)
    codes = rng.integers(0, len(LONG), size=200)
    return {
        "importances": (pictures.importances, np.arange(1.0, 12.0), LONG),
        "swarm": (pictures.swarm, reasons, LONG),
        "waterfall": (pictures.waterfall, reasons, LONG),
        "levels": (pictures.effect, levels, -3.0, 3.0),
        "dates": (pictures.effect, dates, -3e9, 3e9),
        "confusion": (pictures.confusion, codes, codes[::-1], np.array(LONG, dtype=object)),
        "observed": (pictures.observed, 1e9 * values[:, 0], 1e9 * values[:, 1]),
        "residuals": (pictures.residuals, 1e9 * values[:, 0], 1e9 * values[:, 1]),
        "search": (pictures.search, np.array([3e-9, 2e-9, 1e-9])),
        "growth": (pictures.growth, np.array([[3.0, 2e-9], [40.0, 1e-9]]), "grids"),
        "calibration": (pictures.calibration, rng.random(100), rng.random(100) < 0.5),
    }


@pytest.mark.parametrize("kind", easy(drawn_pictures(), "levels", "observed"))
def test_pictures_of_a_report_cut_nothing(kind):
    with matplotlib.rc_context(pictures._STYLE):
        figure = pictures.figure_of(*drawn_pictures()[kind])
        texts = texts_of(figure)
        box, size = figure.get_tightbbox(), figure.get_size_inches()
    assert (np.array([box.x0, box.y0]) >= -0.01).all()
    assert (np.array([box.x1, box.y1]) <= size + 0.01).all()
    assert all(character.isprintable() or character == "\n" for text in texts for character in text)
    pictures.drawn(*drawn_pictures()[kind])


def test_labels_that_begin_with_an_underscore_are_in_the_legend():
    figure = pictures.figure_of(*drawn_pictures()["levels"])
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 4
