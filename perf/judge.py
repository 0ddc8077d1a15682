"""Decisions of the gate, from times and counters."""

from dataclasses import dataclass

from perf.measure import Times

FLOOR = 1e-3  # seconds; smaller differences are due to the clock and the scheduler
ROUNDS = 9  # of the first measurement; the second has twice as many
_ROUNDS_LOST = 8 / 9  # a busy computer can shift the minimum by a fifth, but not slow down one side in so many rounds


@dataclass(frozen=True)
class Pair:
    """Times of one case on both sides; each side runs once per round."""

    base: Times
    head: Times

    @property
    def ratio(self):
        return self.head.best / self.base.best

    @property
    def lost(self):
        """Share of the rounds in which head is slower."""
        rounds = list(zip(self.base.seconds, self.head.seconds, strict=True))
        return sum(base < head for base, head in rounds) / len(rounds)

    def slower(self, threshold):
        """Return True if head loses nearly all rounds, and its minimum is slower by `threshold` percent and `FLOOR`."""
        beyond = self.ratio > 1 + threshold / 100 and self.head.best - self.base.best > FLOOR
        return beyond and self.lost >= _ROUNDS_LOST


def twice_slower(keys, look, threshold):
    """Find keys that are slower in two consecutive measurements.

    Parameters
    ----------
    keys : list
        Compared keys, such as (case, threads).
    look : callable
        From a list of keys and a number of rounds to a dict of key to `Pair`.
    threshold : float
        Percent.

    Returns
    -------
    looks : list of dict
        Results of each measurement; the second contains the keys that were slower in the first.
    slower : list
    """
    looks = [look(keys, ROUNDS)]
    suspects = [key for key, pair in looks[0].items() if pair.slower(threshold)]
    if suspects:
        looks.append(look(suspects, 2 * ROUNDS))
    return looks, [key for key in suspects if looks[-1][key].slower(threshold)]


def changes(base, head):
    """Return counters that differ.

    Parameters
    ----------
    base, head : dict of (case, counter) to int or str

    Returns
    -------
    changed : dict of (case, counter) to (value or None, value or None)
    """
    keys = sorted(base.keys() | head.keys())
    return {key: (base.get(key), head.get(key)) for key in keys if base.get(key) != head.get(key)}


def accepted(base, head):
    """Return changed counters with a reason in head that is not in base.

    Parameters
    ----------
    base, head : str
        Contents of the file of reasons, with lines ``case counter: reason``.

    Returns
    -------
    reasons : dict of (case, counter) to str
    """
    known = set(_reasons(base))
    return {key: reason for key, reason in _reasons(head) if (key, reason) not in known}


def _reasons(text):
    for line in text.splitlines():
        what, _, reason = line.partition(":")
        if len(what.split()) == 2 and reason.strip() and not line.startswith("#"):
            yield tuple(what.split()), reason.strip()
