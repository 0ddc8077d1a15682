"""What displays and the report draw alike, on axes of Matplotlib."""

import numpy as np


def draw_relevances(ax, relevances, names, most, **bar_kwargs):
    """Bars of up to `most` relevances, the largest on top, and a grey bar of the sum of all others; the bars."""
    order = np.argsort(-relevances, kind="stable")
    shown, others = order[:most], order[most:]
    values, labels = relevances[shown], [names[j] for j in shown]
    if others.size:
        values, labels = np.append(values, relevances[others].sum()), [*labels, f"{others.size} others"]
    bars = ax.barh(np.arange(len(labels)), values, **{"height": 0.72, **bar_kwargs})
    if others.size:
        bars[-1].set_color("0.75")
    ax.bar_label(bars, [_share(value) for value in values], padding=4, color="0.35", fontsize="small")
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(len(labels) - 0.4, -0.6), xlabel="Relevance")
    ax.margins(x=0.12)
    return bars


def _share(value):
    return f"{value:.3f}" if value >= 5e-4 or value == 0 else "<0.001"
