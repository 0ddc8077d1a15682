"""Groups of tables; our model compared with each peer on a group; Elo of all models."""

from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression

from perf.tables.peers import OURS
from perf.tables.standings import geometric_mean

_SIZES = (0, 1_500, 5_000, 15_000, 50_000, 150_000, np.inf)
_MANY = 15_000  # rows; boosting is strongest on such tables
_LEAST_LOSS = 1e-4  # added to both losses of a ratio, so that a table without errors does not dominate
_TEN_TO_ONE, _MIDDLE, _ROUNDS, _INTERVAL = 400, 1000, 200, (2.5, 97.5)
_WEAK = 1e4  # inverse of a penalty that only keeps the strength of a model finite that always wins


def groups(standings):
    """Group the tables by kind and by size; synthetic ones are a separate group.

    Returns
    -------
    groups : dict of str to list of Standing
        Groups that are not empty.
    """
    real = [standing for standing in standings if not standing.is_made]
    kinds = {
        "regression": lambda own: own.regression,
        "classification": lambda own: not own.regression,
        "binary classification": lambda own: own.n_classes == 2,
        "multiclass classification": lambda own: (own.n_classes or 0) > 2,
        "numeric inputs only": lambda own: own.categories is False,
        "inputs with categories": lambda own: own.categories,
        "inputs with missing values": lambda own: own.missing,
    }
    found = {"real tables": real}
    found |= {name: [standing for standing in real if is_of(standing.traits)] for name, is_of in kinds.items()}
    for low, high in pairwise(_SIZES):
        name = f"{low:,} to {high:,} training rows" if low else f"up to {high:,} training rows"
        if not np.isfinite(high):
            name = f"more than {low:,} training rows"
        found[name] = [standing for standing in real if low < standing.traits.n_train <= high]
    found[f"all tables with more than {_MANY:,} training rows"] = [own for own in real if own.traits.n_train > _MANY]
    found["synthetic tables"] = [standing for standing in standings if standing.is_made]
    return {name: own for name, own in found.items() if own}


@dataclass(frozen=True)
class Versus:
    """Our model compared with a peer on a group of tables; ratios are ours divided by the peer's.

    Parameters
    ----------
    n : int
        Tables on which both have figures.
    wins, ties, losses : int
        A win is a lower error on all splits, a loss a higher one on all splits.
    p : float
        Two-sided p-value of Wilcoxon's signed-rank test of the logarithms of error ratios, one per table.
    median, mean : float
        Of the ratios of errors; the mean is geometric.
    worst : str
        Table with the lowest ratio.
    worst_ratio, mean_without_worst : float
    log_loss, auc_loss, fit, predict : float
        Medians of ratios; NaN without any.
    """

    n: int
    wins: int
    ties: int
    losses: int
    p: float
    median: float
    mean: float
    worst: str
    worst_ratio: float
    mean_without_worst: float
    log_loss: float
    auc_loss: float
    fit: float
    predict: float


def versus(standings, who):
    """Compare our model with a peer; None if no table has figures of both."""
    own = sorted(
        (standing for standing in standings if OURS in standing.entries and who in standing.entries),
        key=lambda standing: standing.ratio(who),
    )
    if not own:
        return None
    ratios = np.array([standing.ratio(who) for standing in own])
    outcomes = [_outcome(standing.entries[OURS].errors, standing.entries[who].errors) for standing in own]
    logs = np.log(ratios)
    return Versus(
        n=len(own),
        wins=outcomes.count(1),
        ties=outcomes.count(0),
        losses=outcomes.count(-1),
        p=float(wilcoxon(logs).pvalue) if logs.any() else 1.0,
        median=float(np.median(ratios)),
        mean=geometric_mean(ratios),
        worst=own[0].name,
        worst_ratio=float(ratios[0]),
        mean_without_worst=geometric_mean(ratios[1:]) if len(own) > 1 else np.nan,
        **{what: _median_ratio(own, who, what, _LEAST_LOSS) for what in ("log_loss", "auc_loss")},
        **{what: _median_ratio(own, who, what) for what in ("fit", "predict")},
    )


def _outcome(ours, theirs):
    """Return 1, 0 or -1 for a table that is won, tied or lost."""
    signs = set(np.sign(np.subtract(theirs, ours)))
    return int(signs.pop()) if len(signs) == 1 else 0


def _median_ratio(standings, who, what, least=0.0):
    pairs = [[getattr(standing.entries[own], what) + least for own in (OURS, who)] for standing in standings]
    ratios = [ours / theirs for ours, theirs in pairs if np.isfinite(ours + theirs)]
    return float(np.median(ratios)) if ratios else np.nan


def elo(standings, everybody, seed=0):
    """Return Elo as in TabArena: Bradley and Terry's model of all pairs of models on all tables, with mean 1,000.

    A difference of 400 means odds of ten to one for the lower error. The figures maximize the likelihood, and equal
    errors count as half a win for each. Intervals of 95 % are quantiles over 200 bootstrap samples of the tables. A
    model that fails on a table loses against all models with figures; a model that was not fitted is not compared.

    Returns
    -------
    figures : dict of str to tuple of float
        Elo, and the ends of its interval.
    """
    wins = np.array([_wins(standing, everybody) for standing in standings])
    rng = np.random.default_rng(seed)
    samples = [wins[rng.integers(len(wins), size=len(wins))].sum(axis=0) for _ in range(_ROUNDS)]
    low, high = np.percentile([_strengths(sample) for sample in samples], _INTERVAL, axis=0)
    return dict(zip(everybody, zip(*(own.tolist() for own in (_strengths(wins.sum(axis=0)), low, high)))))


def _wins(standing, everybody):
    """Return a matrix of wins: entry (i, j) is 1 if i has a lower error than j, and 1/2 if the errors are equal."""
    errors = {who: entry.error for who, entry in standing.entries.items()} | dict.fromkeys(standing.failed, np.inf)
    wins = np.zeros((len(everybody), len(everybody)))
    for (i, one), (j, other) in permutations(enumerate(everybody), 2):
        if one in errors and other in errors and np.isfinite(errors[one]):
            wins[i, j] = (errors[one] < errors[other]) + 0.5 * (errors[one] == errors[other])
    return wins


def _strengths(wins):
    """Maximize the likelihood of wins by logistic regression, with a row per pair and outcome."""
    pairs = [(i, j) for i, j in zip(*np.nonzero(wins))]
    if not pairs:
        return np.full(len(wins), float(_MIDDLE))
    X, weights = np.zeros((len(pairs), len(wins))), np.array([wins[pair] for pair in pairs])
    for row, (i, j) in zip(X, pairs):
        row[[i, j]] = 1, -1
    model = LogisticRegression(fit_intercept=False, C=_WEAK, solver="newton-cholesky", tol=1e-6)
    model.fit(np.concatenate([X, -X]), np.repeat([1, 0], len(X)), sample_weight=np.tile(weights, 2) / 2)
    logits = model.coef_[0] - model.coef_[0].mean()
    return _MIDDLE + _TEN_TO_ONE * logits / np.log(10)
