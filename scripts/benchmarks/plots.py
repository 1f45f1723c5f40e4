"""Pictures of findings: how times grow with size, and how far times are above their floors."""

import importlib.util
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Finding, Growth, Must, Row

INSTALL = "pip install 'graphmem[bench]' (matplotlib) for --plot"
_HOLDS, _FAILS, _ALLOWED = "#2a7f9e", "#c8553d", "#222222"
_LINES = ("#2a7f9e", "#c8553d", "#6a994e", "#8e6c8a", "#d9a441", "#3d5a80", "#b56576", "#7f4f24")
_FLOOR = "#888888"
_PANELS_IN_A_ROW = 2
_LABEL_WIDTH = 58


def is_installed() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def draw(path: Path, findings: Mapping[str, Finding], machine: Row) -> None:
    """Write one SVG: a panel of growth for each benchmark of several sizes, and the bars of all ratios to a floor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    grown = {name: finding.growths for name, finding in findings.items() if finding.growths}
    bars = [must for finding in findings.values() for must in finding.musts if must.to_floor]
    rows = -(-len(grown) // _PANELS_IN_A_ROW)
    heights = [4.6 * rows or 0.1, 1.1 + 0.36 * len(bars) if bars else 0.1]
    figure = pyplot.figure(figsize=(13, sum(heights) + 0.8), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=heights)
    for place, (name, growths) in enumerate(grown.items(), 1):
        _draw_growth(above.add_subplot(rows, _PANELS_IN_A_ROW, place), name, growths)
    if bars:
        _draw_bars(below.add_subplot(), bars)
    told = f"{machine['date']}, commit {machine['commit']}, {machine['machine']}"
    figure.suptitle(f"graphmem {machine['graphmem']}\n{told}, SQLite {machine['sqlite']}", fontsize=10)
    figure.savefig(path)
    pyplot.close(figure)


def _draw_growth(axes: Any, name: str, growths: Sequence[Growth]) -> None:
    for place, growth in enumerate(growths):
        sizes, times = zip(*growth.points, strict=True)
        axes.plot(
            sizes, times, marker="o", markersize=4, color=_FLOOR if growth.is_floor else _LINES[place % len(_LINES)],
            linestyle=":" if growth.is_floor else "-", label=f"{growth.what}: slope {growth.slope:.2f}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=f"number of {growths[0].size}", ylabel="microseconds")
    axes.set_title(f"{name}: time as its store grows")
    # As many decades up as to the right, so that slopes look as they are; what is free lies below, for the legend.
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_ylim(min(low / 10, high * left / right), high * 1.5)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, loc="lower right", framealpha=0.9)


def _draw_bars(axes: Any, bars: Sequence[Must]) -> None:
    names = ["\n".join(textwrap.wrap(must.what, _LABEL_WIDTH)) for must in bars]
    places = range(len(bars))
    axes.barh(places, [must.measured for must in bars], color=[_HOLDS if must.holds else _FAILS for must in bars])
    for place, must in zip(places, bars, strict=True):
        axes.plot([must.allowed] * 2, [place - 0.42, place + 0.42], color=_ALLOWED, linewidth=2)
        axes.annotate(
            f"{must.measured:.2f} of {must.allowed:g}", (max(must.measured, must.allowed), place),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.axvline(1.0, color=_ALLOWED, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, names, fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(title="Times the floor. Dotted: the floor. Black: what is allowed. Red: more than that", xlabel="floors")
