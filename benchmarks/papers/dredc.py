"""Optimised Maintenance of Datalog Materialisations: Tables 1 and 2, and the curves and counters of Examples 1 to 3."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from benchmarks.papers.items import Settings, reproduces
from benchmarks.papers.tables import Cell, Figures, Plot, Table
from benchmarks.strategy_cases import Options
from benchmarks.strategy_turns import Outcome, measure

NAMES = {"dredc": "DRed^c", "dred": "DRed", "bfc": "B/F^c", "bf": "B/F"}
PHASES = ("over_deletions", "rederivations", "deletions", "backward", "forward", "insertions", "derivations")
EXAMPLE_3 = """
.decl A(x: number)
.decl B(x: number, y: number)
A(y) :- A(x), B(x, y).
"""


def _options(settings: Settings, is_unbounded: bool = False) -> Options:
    nodes, edges = (10_000, 100_000) if settings.is_quick else (100_000, 1_000_000)
    data = None if settings.data is None else str(settings.data)
    return Options(data, nodes, edges, None, 3 if settings.is_quick else 10, 1800, is_unbounded)


@cache
def _outcome(name: str, strategy: str, settings: Settings, size: int = 0, is_unbounded: bool = False) -> Outcome:
    outcome = measure(name, size, strategy, _options(settings, is_unbounded))
    if outcome.problem:
        raise RuntimeError(f"{name}, {strategy}: {outcome.problem}")
    return outcome


def _facts(name: str, settings: Settings) -> str:
    return "one university" if name in ("lubm", "lubm-owl") else f"{_options(settings).edges:,} edges"


def _works(settings: Settings) -> tuple[str, ...]:
    return ("sspe", "lubm") if settings.data is not None and (settings.data / "lubm").is_dir() else ("sspe",)


def _medians(name: str, label: str, settings: Settings) -> dict[str, float]:
    return {s: statistics.median(_outcome(name, s, settings).seconds[label]) for s in NAMES}


@reproduces("Table 1: deletions of 1000 facts")
def table1(settings: Settings) -> Figures:
    return _small_deletions(_works(settings), settings)


def _small_deletions(works: Sequence[str], settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    phases: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in works:
        times = _medians(name, "-1000", settings)
        ratios = (times["dred"] / times["dredc"], times["bf"] / times["bfc"])
        rows.append((name.upper(), _facts(name, settings), *times.values(), *ratios))
        values |= {f"{name} DRed / DRed^c": ratios[0], f"{name} B/F / B/F^c": ratios[1]}
        values[f"{name} DRed^c / B/F^c"] = times["dredc"] / times["bfc"]
        counted = {strategy: _outcome(name, strategy, settings).counters for strategy in NAMES}
        phases += [(name.upper(), NAMES[s], *(counters.get(p, 0) for p in PHASES)) for s, counters in counted.items()]
        for new, old in (("dredc", "dred"), ("bfc", "bf")):
            more = counted[new]["derivations"] - counted[old]["derivations"]
            values[f"{name} derivations, {NAMES[new]} over {NAMES[old]}"] = more
    head = ("data", "facts", *NAMES.values(), "DRed / DRed^c", "B/F / B/F^c")
    tables = [
        Table("processor seconds, median", head, rows),
        Table("Facts by phase", ("data", "algorithm", *(phase.replace("_", "-") for phase in PHASES)), phases),
    ]
    return Figures(tables, values=values)


@reproduces("Table 2: large deletions")
def table2(settings: Settings) -> Figures:
    return _large_deletions(_works(settings), settings)


def _large_deletions(works: Sequence[str], settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in works:
        times = _medians(name, "-2 %", settings)
        remat = statistics.median(_outcome(name, "recompute", settings).seconds["-2 %"])
        first = {s: _outcome(name, s, settings).bootstrap for s in ("recompute", "bfc", "dredc")}
        rows.append((name.upper(), "2 %", *times.values(), remat, *first.values()))
        values |= {f"{name} DRed / DRed^c": times["dred"] / times["dredc"]}
        values |= {f"{name} B/F / B/F^c": times["bf"] / times["bfc"]}
        values |= {f"{name} DRed^c / remat": times["dredc"] / remat}
        values |= {f"{name} 2C / none": first["dredc"] / first["recompute"]}
    head = ("data", "deleted", *NAMES.values(), "remat", "first evaluation", "1C", "2C")
    return Figures([Table("processor seconds, median", head, rows)], values=values)


@reproduces("Tables 1 and 2, LUBM of its ontology")
def ontology(settings: Settings) -> Figures:
    works = [*_works(settings)[1:], "lubm-owl"]
    small, large = _small_deletions(works, settings), _large_deletions(works, settings)
    return Figures([*small.tables, *large.tables], values=small.values)


@reproduces("Tables 1 and 2, SSPE with the search unbounded")
def unbounded(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    ratios: dict[str, list[tuple[float, float]]] = {}
    for nodes in (500, 1000, 2000) if settings.is_quick else (1000, 2000, 4000, 8000):
        options = replace(_options(settings), nodes=nodes, edges=10 * nodes, repeats=1)
        found = {s: measure("sspe", 0, s, options) for s in ("dredc", "dred")}
        found["unbounded"] = measure("sspe", 0, "dred", replace(options, is_unbounded=True))
        for label in ("-1000", "-2 %"):
            times = [outcome.seconds[label][0] for outcome in found.values()]
            rows.append((nodes, label, *times, times[1] / times[0], times[2] / times[0]))
            ratios.setdefault(label, []).append((nodes, times[2] / times[0]))
    head = ("nodes", "deleted", "DRed^c", "DRed", "DRed, unbounded", "DRed / DRed^c", "unbounded / DRed^c")
    plot = Plot("SSPE: DRed, unbounded, over DRed^c", "nodes", "ratio of times", ratios)
    values = {f"{label} ratio": points[-1][1] for label, points in ratios.items()}
    return Figures([Table("processor seconds; ten edges a node", head, rows)], [plot], values)


@reproduces("Example 1: a join whose head says little of it")
def example1(settings: Settings) -> Figures:
    return _curves("example1", (300, 1000, 3000) if settings.is_quick else (1000, 3000, 10_000, 30_000), settings)


@reproduces("Example 2: a sum in the head")
def example2(settings: Settings) -> Figures:
    return _curves("example2", (100, 300, 1000) if settings.is_quick else (300, 1000, 3000), settings)


def _curves(name: str, sizes: Sequence[int], settings: Settings) -> Figures:
    series: dict[str, list[tuple[float, float]]] = {}
    searched: dict[str, list[tuple[float, float]]] = {}
    rows: list[Sequence[Cell]] = []
    for size in sizes:
        cells: list[Cell] = [size]
        for strategy, is_unbounded in (*((s, False) for s in NAMES), ("dred", True), ("bf", True)):
            outcome = _outcome(name, strategy, settings, size, is_unbounded)
            label = NAMES[strategy] + (", unbounded" if is_unbounded else "")
            (seconds,) = outcome.seconds.values()
            series.setdefault(label, []).append((size, 1000 * seconds[0]))
            cells.append(1000 * seconds[0])
            if is_unbounded:
                searched.setdefault(label, []).append((size, outcome.counters["rows"]))
                cells.append(outcome.counters["rows"])
        rows.append(cells)
    head = ["n", *NAMES.values()]
    for label in searched:
        head += [label, "rows"]
    values = {f"{label} order": _order(points) for label, points in searched.items()}
    values |= {
        f"{label} over-deletions": _counted(name, strategy, sizes[-1], settings) for strategy, label in NAMES.items()
    }
    values["n"] = sizes[-1]
    plots = [
        Plot(f"{name}: time of the deletion", "n", "ms", series),
        Plot(f"{name}: rows of the backward search", "n", "rows", searched),
    ]
    return Figures([Table("processor milliseconds of the deletion", head, rows)], plots, values)


def _counted(name: str, strategy: str, size: int, settings: Settings) -> int:
    counters = _outcome(name, strategy, settings, size).counters
    return counters["over_deletions"] + counters["deletions"]


def _order(points: Sequence[tuple[float, float]]) -> float:
    """The exponent of growth between the two largest sizes."""
    (x, y), (larger, more) = points[-2:]
    return round(math.log(more / y) / math.log(larger / x), 2)


@reproduces("Example 3 and Figure 1: what is over-deleted")
def example3(settings: Settings) -> Figures:
    import elastalog

    facts = {"A": [(1,), (2,), (4,)], "B": [(1, 3), (2, 3), (3, 4), (4, 5)]}
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for strategy, label in (("dred", "DRed"), ("dredc", "DRed^c"), ("dense", "counting")):
        with elastalog.open(EXAMPLE_3, facts, strategy=strategy) as db:
            update = db.update()
            update.delete("A", [(1,)])
            update.commit()
            counters = update.stats.work.counters.as_dict()
            left = sorted(str(fact) for (fact,) in db["A"])
        by_rules = counters["over_deletions"]
        rows.append((label, 1 + by_rules, counters["rederivations"], ", ".join(f"A({fact})" for fact in left)))
        values |= {f"{label} over-deleted": 1 + by_rules, f"{label} over-deleted by rules": by_rules}
        values[f"{label} left"] = len(left)
    return Figures([Table("", ("algorithm", "over-deleted", "found again", "facts in the end"), rows)], values=values)
