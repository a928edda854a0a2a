"""Backward/Forward with Marking for Update Streams: Tables 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.items import Settings, reproduces
from benchmarks.papers.printed import TABLES
from benchmarks.papers.tables import Cell, Figures, Plot, Table
from benchmarks.streams import Outcome, measure, streams_of

STRATEGIES = ("bf", "bf+linked", "bf+eager")
SIZES = (10, 20, 30, 40, 50, 60, 70, 80)
PHASES = ("deletions", "backward", "forward")


@reproduces("Table 1: P_trans")
def table1(settings: Settings) -> Figures:
    return _generated("trans", settings)


@reproduces("Table 2: P_seq")
def table2(settings: Settings) -> Figures:
    return _generated("seq", settings)


@reproduces("Table 3: map data along GPS tracks", "streams")
def table3(settings: Settings) -> Figures:
    return _figures("ways", settings, "track")


def _generated(name: str, settings: Settings) -> Figures:
    return _figures(name, settings, "size")


def _figures(name: str, settings: Settings, case: str) -> Figures:
    data = None if settings.data is None else str(settings.data)
    streams = streams_of(name, data, SIZES, runs=1 if settings.is_quick and name != "ways" else 3)
    repeats = 1 if settings.is_quick else 5
    outcomes = [outcome for stream in streams for outcome in measure(stream, STRATEGIES, repeats)]
    rows: list[Sequence[Cell]] = []
    values: dict[str, float] = {}
    times: dict[str, list[tuple[float, float]]] = {}
    for place, label in enumerate(dict.fromkeys(outcome.case for outcome in outcomes)):
        own = {s: [o for o in outcomes if o.case == label and o.strategy == s] for s in STRATEGIES}
        short = label.rpartition("/")[2]
        rows.append(_row(short, own))
        values |= {f"{short} {key}": value for key, value in _values(own).items()}
        for strategy, some in own.items():
            times.setdefault(strategy, []).append((float(short) if case == "size" else place, _milliseconds(some)))
    seconds = {s: sum(sum(o.seconds) for o in outcomes if o.strategy == s) for s in STRATEGIES}
    values["time with linked marks"] = seconds["bf+linked"] / seconds["bf"]
    head = (*TABLES[f"marking.{_TABLE_OF[name]}"][0].head, "deletions, eager marks")
    plot = Plot("time of an update", case, "ms", times, is_linear=True)
    return Figures([Table("facts by phase, without and with linked marks", head, rows)], [plot], values)


_TABLE_OF = {"trans": "table1", "seq": "table2", "ways": "table3"}


def _milliseconds(outcomes: Sequence[Outcome]) -> float:
    return 1000 * sum(sum(o.seconds) for o in outcomes) / sum(len(o.seconds) for o in outcomes)


def _mean(outcomes: Sequence[Outcome], counter: str) -> float:
    return round(sum(outcome.counters.get(counter, 0) for outcome in outcomes) / len(outcomes))


def _row(case: str, own: dict[str, list[Outcome]]) -> Sequence[Cell]:
    old, new = own["bf"], own["bf+linked"]
    both = [_mean(outcomes, phase) for phase in PHASES for outcomes in (old, new)]
    less = 100 * (1 - _milliseconds(new) / _milliseconds(old))
    marks = [_mean(new, "marked_explicit"), _mean(new, "marked_implicit")]
    return (case, less, *both, _mean(old, "insertions"), *marks, _mean(own["bf+eager"], "deletions"))


def _values(own: dict[str, list[Outcome]]) -> dict[str, float]:
    old, new = own["bf"], own["bf+linked"]
    found = {"insertions": _mean(old, "insertions"), "marks ex.": _mean(new, "marked_explicit")}
    found |= {"marks im.": _mean(new, "marked_implicit"), "deletions, eager": _mean(own["bf+eager"], "deletions")}
    for phase in PHASES:
        found |= {phase: _mean(old, phase), f"{phase}, marks": _mean(new, phase)}
    found["backward, more with marks"] = found["backward, marks"] - found["backward"]
    found["deletions saved"] = 1 - found["deletions, marks"] / max(1, found["deletions"])
    found["time"] = _milliseconds(new) / _milliseconds(old)
    return found
