"""Towards Elastic Incrementalization for Datalog: Tables 1 to 4, Figures 5 and 6, and what its text says of both."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from benchmarks.papers.items import Settings, reproduces
from benchmarks.papers.tables import Cell, Figures, Plot, Table
from benchmarks.updates import EPOCH_STRATEGIES, Cycle, epoch_seconds, opened, timed
from benchmarks.workloads import BY_NAME

TITLES = {"doop": "Doop", "crdt": "CRDT", "galen": "Galen"}
SIZES = {
    "doop": (10, 100, 400, 700, 1000),
    "crdt": (10, 40, 70, 100),
    "galen": (10, 10_000, 40_000, 70_000, 100_000),
}
SETS = {"doop": 5, "crdt": 5, "galen": 1}
"""Update sets of each size; of Galen one, since deleting and inserting it takes minutes."""
LARGE = {"doop": 1000, "crdt": 100, "galen": 100_000}
ENGINES: Mapping[str, Mapping[str, Any]] = {
    "elastic (update)": {"budget": None},
    "elastic": {},
    "counting": {"strategy": "dense"},
}
"""`counting`, a count for every iteration, is the strategy `dense`."""

BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(slots=True)
class Cycles:
    """Update sets of one size, deleted and inserted again."""

    deleting: list[float] = field(default_factory=list)
    inserting: list[float] = field(default_factory=list)
    impact: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """A workload under one engine: its first epoch, the state in bytes after all updates, and those by size."""

    bootstrap: float
    size: int = 0
    cycles: dict[int, Cycles] = field(default_factory=dict)


def _works(settings: Settings) -> tuple[str, ...]:
    return ("doop", "crdt") if settings.is_quick else ("doop", "crdt", "galen")


@cache
def _cycles(name: str, engine: str, settings: Settings) -> Run:
    work = BY_NAME[name]
    facts = work.facts(settings.data)
    chooser = Cycle(facts)
    session, bootstrap = opened(work, facts, **ENGINES[engine])
    with session:
        session.engine.warm()
        run = Run(bootstrap)
        for size in SIZES[name]:
            cycles = run.cycles[size] = Cycles()
            for seed in range(3 if settings.is_quick else SETS[name]):
                chosen = chooser.choose(size, seed)
                seconds, changes = timed(partial(session.apply, deleted=chosen))
                cycles.deleting.append(seconds)
                cycles.impact.append(changes.impact - size)
                cycles.inserting.append(timed(partial(session.apply, inserted=chosen))[0])
        run.size = session.statistics().bytes
    return run


@cache
def _recompute(name: str, settings: Settings) -> Run:
    """The seconds of an evaluation: the least of three."""
    work = BY_NAME[name]
    facts = work.facts(settings.data)
    runs = []
    for _ in range(3):
        session, seconds = opened(work, facts, strategy="recompute")
        with session:
            runs.append(Run(seconds, session.statistics().bytes))
    return min(runs, key=lambda run: run.bootstrap)


@reproduces("Table 1: the benchmarks", "doop", "crdt", "galen")
def table1(settings: Settings) -> Figures:
    import elastalog

    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name, title in TITLES.items():
        work = BY_NAME[name]
        facts = work.facts(settings.data)
        explicit = sum(map(len, facts.values()))
        with elastalog.open(work.program, facts=facts, engine="local") as session:
            rules = len(session.program.checked.rules)
            everything = sum(len(session[relation]) for relation in session)
        rows.append((title, rules, explicit, everything))
        values |= {f"{name} rules": rules, f"{name} EDB": explicit, f"{name} IDB": everything}
    return Figures([Table("", ("benchmark", "rules", "EDB", "IDB"), rows)], values=values)


@reproduces("Table 2: the impact of updates", "doop", "crdt")
def table2(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        for size, cycles in _cycles(name, "elastic", settings).cycles.items():
            least, largest = min(cycles.impact), max(cycles.impact)
            rows.append((TITLES[name], size, least, largest))
            values |= {f"{name} {size} least": least, f"{name} {size} largest": largest}
        impacts = [c.impact for c in _cycles(name, "elastic", settings).cycles.values()]
        values[f"{name} spread"] = max(max(impact) / max(1, min(impact)) for impact in impacts)
    return Figures([Table("least and largest impact", ("benchmark", "size", "least", "largest"), rows)], values=values)


@reproduces("Table 3: memory", "doop", "crdt")
def table3(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        base = _recompute(name, settings).size
        cells: list[Cell] = [TITLES[name], base / 1e6]
        for engine in ("elastic", "counting"):
            size = _cycles(name, engine, settings).size
            cells += [size / 1e6, size / base]
            values[f"{name} {engine} / recompute"] = size / base
        rows.append(cells)
        values[f"{name} counting / elastic"] = (
            values[f"{name} counting / recompute"] / values[f"{name} elastic / recompute"]
        )
    head = ("benchmark", "recompute", "elastic", "ratio", "counting (dense)", "ratio")
    return Figures([Table("MB after all update sets; ratio to recompute", head, rows)], values=values)


@reproduces("Table 4: times of updates, and the worst of them", "doop", "crdt")
def table4(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    worst: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        recompute = _recompute(name, settings).bootstrap
        for engine in ENGINES:
            run = _cycles(name, engine, settings)
            slowest = 0.0
            for size, cycles in run.cycles.items():
                times = [f(t) for t in (cycles.deleting, cycles.inserting) for f in (min, max)]
                rows.append((TITLES[name], engine, size, run.bootstrap, *times, run.size / 1e6))
                slowest = max(slowest, *times)
                values[f"{name} {engine} {size} faster"] = recompute / statistics.median(
                    cycles.deleting + cycles.inserting
                )
            worst.append((TITLES[name], engine, recompute, slowest, slowest / recompute))
            values[f"{name} {engine} worst"] = slowest / recompute
            values[f"{name} {engine} bootstrap"] = run.bootstrap / recompute
    head = ("benchmark", "engine", "updates", "epoch 0", "− least", "− most", "+ least", "+ most", "MB")
    worst_head = ("benchmark", "engine", "recompute", "worst update", "ratio")
    tables = [
        Table("processor seconds", head, rows),
        Table("The worst update of any size, and a recomputation, seconds", worst_head, worst),
    ]
    return Figures(tables, values=values)


@reproduces("Figure 5: size of updates and time", "doop", "crdt")
def figure5(settings: Settings) -> Figures:
    plots: list[Plot] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        series: dict[str, list[tuple[float, float]]] = {}
        for engine in ("elastic (update)", "counting"):
            for size, cycles in _cycles(name, engine, settings).cycles.items():
                both = [sum(pair) for pair in zip(cycles.deleting, cycles.inserting, strict=True)]
                series.setdefault(engine, []).extend((size, seconds) for seconds in both)
        twice = 2 * _recompute(name, settings).bootstrap
        series["recompute"] = [(size, twice) for size in SIZES[name]]
        plots.append(Plot(f"{TITLES[name]}: a cycle", "facts in the update", "seconds", series, "points"))
        points = series["elastic (update)"]
        smallest, largest = SIZES[name][0], SIZES[name][-1]
        medians = [statistics.median(s for size, s in points if size == one) for one in (smallest, largest)]
        values[f"{name} growth"] = medians[1] / medians[0]
        values[f"{name} smallest / line"] = medians[0] / twice
        values[f"{name} over the line"] = sum(seconds > twice for _, seconds in points)
    return Figures(plots=plots, values=values)


@reproduces("Figure 6: a workload of 13 epochs", "doop", "crdt")
def figure6(settings: Settings) -> Figures:
    rows: list[Sequence[Cell]] = []
    plots: list[Plot] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        work = BY_NAME[name]
        facts = work.facts(settings.data)
        engines = {**EPOCH_STRATEGIES, "counting": ENGINES["counting"]}
        spent = {e: epoch_seconds(work, facts, options, 10, LARGE[name]) for e, options in engines.items()}
        totals = {engine: sum(seconds) for engine, seconds in spent.items()}
        ratio = totals["recompute"] / totals["elastic"]
        rows.append(
            (
                TITLES[name],
                totals["recompute"],
                totals["elastic"],
                ratio,
                *(totals[e] for e in ("update only", "counting")),
            )
        )
        values[f"{name} recompute / elastic"] = ratio
        values[f"{name} counting / elastic"] = totals["counting"] / totals["elastic"]
        lines = {engine: list(enumerate(seconds)) for engine, seconds in spent.items()}
        plots.append(Plot(f"{TITLES[name]}: 13 epochs", "epoch", "seconds", lines, is_linear=True))
    head = ("benchmark", "recompute", "elastic", "ratio", "update only", "counting (dense)")
    return Figures(
        [Table("processor seconds for all 13 epochs; ratio of recompute to elastic", head, rows)], plots, values
    )


@reproduces("Section 5.2: the threshold of the switch", "doop", "crdt")
def threshold(settings: Settings) -> Figures:
    series: dict[str, list[tuple[float, float]]] = {}
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    for name in _works(settings):
        work = BY_NAME[name]
        facts = work.facts(settings.data)
        totals = {b: sum(epoch_seconds(work, facts, {"budget": b}, 10, LARGE[name])) for b in (*BUDGETS, None)}
        series[TITLES[name]] = [(100 * b, t) for b, t in totals.items() if b is not None]
        rows.append((TITLES[name], *totals.values()))
        values[f"{name} 20 % / best"] = totals[0.2] / min(totals.values())
        values[f"{name} 0 % / 20 %"] = totals[0.0] / totals[0.2]
    head = ("benchmark", *(f"{b:.0%}" for b in BUDGETS), "no limit")
    plot = Plot("threshold of the switch", "% of a bootstrap", "seconds", series, is_linear=True)
    return Figures([Table("processor seconds for all 13 epochs", head, rows)], [plot], values)
