"""Pictures of findings: how times grow with size, and how far times are above their floors."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Growth, Must, Row

INSTALL = "pip install 'graphmem[bench]' (matplotlib) for --plot"
_HOLDS, _FAILS, _ALLOWED = "#2a7f9e", "#c8553d", "#222222"
_LINES = ("#2a7f9e", "#c8553d", "#6a994e", "#8e6c8a", "#d9a441", "#555555")
_PANELS_IN_A_ROW = 2
_LABEL_WIDTH = 58


def is_installed() -> bool:
    try:
        import matplotlib  # noqa: F401: only whether it is there
    except ImportError:
        return False
    return True


def draw(path: Path, findings: Mapping[str, Finding], machine: Row) -> None:
    """Write one SVG: a panel of growth for each benchmark of several sizes, and the bars of all ratios to a floor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    grown = {name: finding.growths for name, finding in findings.items() if finding.growths}
    bars = [must for finding in findings.values() for must in finding.musts if must.to_floor]
    rows = -(-len(grown) // _PANELS_IN_A_ROW)
    heights = [4.2] * rows + ([0.9 + 0.36 * len(bars)] if bars else [])
    if not heights:
        heights = [1.0]
    figure = pyplot.figure(figsize=(13, sum(heights) + 0.8), layout="constrained")
    grid = figure.add_gridspec(len(heights), _PANELS_IN_A_ROW, height_ratios=heights)
    for place, (name, growths) in enumerate(grown.items()):
        _draw_growth(figure.add_subplot(grid[place // _PANELS_IN_A_ROW, place % _PANELS_IN_A_ROW]), name, growths)
    if bars:
        _draw_bars(figure.add_subplot(grid[rows, :]), bars)
    told = f"{machine['date']}, commit {machine['commit']}, {machine['machine']}"
    figure.suptitle(f"graphmem {machine['graphmem']}\n{told}, SQLite {machine['sqlite']}", fontsize=10)
    figure.savefig(path)
    pyplot.close(figure)


def _draw_growth(axes, name: str, growths: Sequence[Growth]) -> None:  # type: ignore[no-untyped-def]
    for place, growth in enumerate(growths):
        sizes, times = zip(*growth.points, strict=True)
        axes.plot(
            sizes, times, marker="o", markersize=4, color=_LINES[place % len(_LINES)],
            linestyle="--" if place >= len(_LINES) else "-", label=f"{growth.what}: slope {growth.slope:.2f}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", title=f"{name}: time over size", xlabel="size", ylabel="time, as in the table")
    # Room below, so that a flat line looks flat and the legend covers no line.
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, high / 1000) / 3, high * 2)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, loc="lower right", framealpha=0.9)


def _draw_bars(axes, bars: Sequence[Must]) -> None:  # type: ignore[no-untyped-def]
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
    axes.set(
        title="times the floor (dotted: the floor; black mark: what is allowed; red: does not hold)", xlabel="floors"
    )
