"""Plots of the results, drawn with matplotlib without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def _axes(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    axes.grid(axis="y", alpha=0.3)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    """Equal figures give equal files."""
    import matplotlib
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": path.name}):
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def draw_bars(path: Path, title: str, unit: str, series: Mapping[str, Mapping[str, float]]) -> None:
    """Groups of bars on a logarithmic scale: for each name, one bar a series. Series without values are left out."""
    shown = {label: values for label, values in series.items() if values}
    names = list(dict.fromkeys(name for values in shown.values() for name in values))
    figure, axes = _axes(max(6.0, 0.9 * len(names) + 2), 4.5)
    width = 0.8 / max(1, len(shown))
    for place, (label, values) in enumerate(shown.items()):
        at = [index + place * width for index, name in enumerate(names) if name in values]
        axes.bar(at, [values[name] for name in names if name in values], width, label=label)
    axes.set_xticks([index + 0.4 - width / 2 for index in range(len(names))], names, rotation=30, ha="right")
    if shown:
        axes.set_yscale("log")
        axes.legend()
    axes.set_ylabel(unit)
    axes.set_title(title)
    _save(figure, path)


def draw_lines(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    is_joined: bool = True,
    is_linear: bool = False,
) -> None:
    """Lines through points, or points alone; both axes logarithmic, but x if it `is_linear`."""
    figure, axes = _axes(6.5, 4.5)
    for label, points in series.items():
        line = "-" if is_joined else ""
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", linestyle=line, label=label)
    if not is_linear:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    axes.legend()
    _save(figure, path)


def draw_histograms(
    path: Path, title: str, x_label: str, y_label: str, series: Mapping[str, Mapping[int, float]]
) -> None:
    """How often each whole number occurs, in steps, one outline a series; frequencies are logarithmic."""
    figure, axes = _axes(6.5, 4.5)
    for label, frequencies in series.items():
        places = range(min(frequencies), max(frequencies) + 1)
        axes.stairs(
            [frequencies.get(place, 0) for place in places],
            [place - 0.5 for place in (*places, places.stop)],
            label=label,
        )
    axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    axes.legend()
    _save(figure, path)
