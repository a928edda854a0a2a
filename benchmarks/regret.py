"""What the elastic choice costs against the better of update and bootstrap, known afterwards.

`python -m benchmarks.regret CASE ... [--data DIR] [--repeats N]`; cases: doop, crdt, lubm, el-completion (rules and
shape of Galen), galen, closure-TG, sspe, usroads-reachability, each also as "doop (other)": with updates that no
constant of the model was chosen by; ways, bursts.

Every stream is played with updates only, with every stratum evaluated anew, with `budget="auto"` and with a fixed
fifth. The better way of an epoch is, stratum by stratum, the cheaper of the first two; regret is the cost of a choice
over it, summed over all epochs, and the largest of an epoch beyond 5 ms. Twice: as the cost model counts, which no
other load on the machine can disturb, and in seconds of the processor, the least of the repeats. `rate` is what the
model's unit took in updates and in bootstraps, in nanoseconds. `--epochs` prints what single strata cost where the
choice was worse by more than that many milliseconds. Writes benchmarks/results/regret.json and a plot.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import streams
from benchmarks.keep import keep_results
from benchmarks.plot import draw_bars
from benchmarks.strategies import aligned
from benchmarks.updates import REACHABILITY, Cycle
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, Facts, data_folder
from elastalog.evaluation.costs import CostModel, Forecast, How
from elastalog.evaluation.strategies import elastic
from elastalog.planning.logical import LogicalStratum

Step = tuple[Facts, Facts]
LEAST_SECONDS = 0.005
CHOICES: Mapping[str, Any] = {"auto": "auto", "a fifth": 0.2}


@dataclass(frozen=True, slots=True)
class Case:
    program: str | Path
    facts: Facts
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one stratum in one epoch."""

    how: str
    counted: float
    derivations: int
    seconds: float


Played = list[dict[int, Cost]]
"""The costs of an epoch by stratum, epoch by epoch."""


@dataclass(frozen=True, slots=True)
class Regret:
    """`counted` and `timed`: the whole cost over that of the better way; `worst`: the largest of an epoch."""

    counted: float
    timed: float
    worst_counted: float
    worst_timed: float
    seconds: float
    better_seconds: float


class AlwaysAnew(CostModel):
    """Has every stratum evaluated anew."""

    def choose(self, stratum: LogicalStratum, *features: Any) -> Forecast:
        return Forecast(stratum.number, stratum.relations, How.RECOMPUTE, "always", None, None)


# --- the cases -------------------------------------------------------------------------------------------------------


OTHER = " (other)"
"""Ends the names of cases with other updates of other sizes than those by which the model's constants were chosen."""


def epochs_of(name: str, part: float = 1) -> Callable[[str | None], list[Case]]:
    """Facts deleted and inserted again: small updates, one of 10 % of the facts (others: 5 %), small ones, three of 1 %
    (others: 0.5 %). `part`: the share of the facts that are there at all."""

    def make(data: str | None) -> list[Case]:
        known = name.removesuffix(OTHER)
        work = REACHABILITY if known == REACHABILITY.name else BY_NAME[known]
        facts = work.facts(data_folder(data))
        if part < 1:
            random = np.random.default_rng(5)
            facts = {n: t.take(np.flatnonzero(random.random(len(t)) < part)) for n, t in facts.items()}
        cycle = Cycle(facts)
        first, sizes = 1000, [100, 100, 10, cycle.total // 10, 100, 1, *[cycle.total // 100] * 3]
        if known != name:
            large = [cycle.total // 200] * 3
            first, sizes = 5000, [50, 200, 20, cycle.total // 20, 300, 3, *large, cycle.total // 100, 30]
        steps: list[Step] = []
        for seed, size in enumerate(sizes):
            chosen = cycle.choose(size, first + seed)
            steps += [(chosen, {}), ({}, chosen)]
        return [Case(work.program, facts, steps)]

    return make


def ways(data: str | None) -> list[Case]:
    return [Case(stream.program, {}, stream.updates) for stream in streams.RECORDED["ways"](data)]


def bursts(data: str | None) -> list[Case]:
    """A closure of small components: single edges, and every tenth time many at once, now few and now most."""
    random = np.random.default_rng(7)
    ends = random.integers(0, 100, (30_000, 2)) + 100 * random.integers(0, 200, (30_000, 1))
    edges = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    facts = {"edge": pa.table({"x": edges[:, 0], "y": edges[:, 1]})}
    steps: list[Step] = []
    for number in range(60):
        size = 1 if number % 10 else int(random.choice((20, 200, len(edges) // 2)))
        some = {"edge": facts["edge"].take(np.sort(random.choice(len(edges), size, replace=False)))}
        steps += [(some, {}), ({}, some)]
    return [Case(streams.TRANSITIVE, facts, steps)]


_CYCLES = ("doop", "crdt", "lubm", "el-completion", "galen", "closure-TG", "sspe", REACHABILITY.name)
CASES: Mapping[str, Callable[[str | None], list[Case]]] = {
    **{name + other: epochs_of(name + other) for other in ("", OTHER) for name in _CYCLES},
    "galen-part": epochs_of("galen", 0.6),
    "ways": ways,
    "bursts": bursts,
}


# --- playing ---------------------------------------------------------------------------------------------------------


class ProcessorTime:
    """In the place of the clock: other processes are no part of what is measured."""

    perf_counter = staticmethod(time.process_time)


def play(case: Case, budget: Any, *, is_anew: bool = False) -> Played:
    """Plays a stream."""
    import elastalog

    vars(elastic)["time"] = ProcessorTime
    with elastalog.open(case.program, case.facts, budget=budget, engine="local") as db:
        strategy: Any = db._epochs.strategy
        if is_anew:
            model = AlwaysAnew(None)
            model.become(strategy.costs)
            strategy.costs = model
        db.engine.warm()
        played: Played = []
        for deleted, inserted in case.steps:
            epoch = db.epoch
            db.apply(inserted, deleted)
            done = db.log()[-1].strata if db.epoch > epoch else ()
            played.append({work.stratum: of_work(work) for work in done})
        return played


def least(repeats: Sequence[Played]) -> Played:
    """The same costs with the least seconds that were measured."""
    return [
        {
            stratum: replace(cost, seconds=min(other[i][stratum].seconds for other in repeats))
            for stratum, cost in epoch.items()
        }
        for i, epoch in enumerate(repeats[0])
    ]


def of_work(work: Any) -> Cost:
    return Cost(work.how, work.derivations if work.cost is None else work.cost, work.derivations, work.seconds)


def regret(chosen: Played, updates: Played, anew: Played) -> Regret:
    """What a choice cost over the better way."""
    sums = np.zeros(4)
    worst = [1.0, 1.0]
    for epoch, updated, evaluated in zip(chosen, updates, anew, strict=True):
        one = np.zeros(4)
        for stratum, cost in epoch.items():
            ways_of = updated[stratum], evaluated[stratum]
            one += (
                cost.counted,
                min(way.counted for way in ways_of),
                cost.seconds,
                min(way.seconds for way in ways_of),
            )
        sums += one
        if one[2] > LEAST_SECONDS:
            worst = [max(worst[0], one[0] / max(one[1], 1)), max(worst[1], one[2] / one[3])]
    whole = float(sums[0] / max(sums[1], 1)), float(sums[2] / sums[3])
    return Regret(*whole, worst[0], worst[1], float(sums[2]), float(sums[3]))


def rate_of(played: Played) -> float:
    """Nanoseconds for what is counted as one, of large updates."""
    large = [cost for epoch in played for cost in epoch.values() if cost.counted > 20_000]
    return 1e9 * sum(cost.seconds for cost in large) / max(sum(cost.counted for cost in large), 1)


def worse(chosen: Played, updates: Played, anew: Played, milliseconds: float) -> Iterator[str]:
    """Where a choice was worse than the better way by so much."""
    for number, (epoch, updated, evaluated) in enumerate(zip(chosen, updates, anew, strict=True)):
        for stratum, cost in epoch.items():
            ways_of = updated[stratum], evaluated[stratum]
            if cost.seconds - min(way.seconds for way in ways_of) > milliseconds / 1000:
                told = [f"{way.how} {1000 * way.seconds:.1f} ms ({way.counted:,.0f})" for way in (cost, *ways_of)]
                yield f"  epoch {number}, stratum {stratum}: {', '.join(told)}"


def measure(cases: Sequence[Case], repeats: int, told: float | None) -> dict[str, Regret]:
    def played(budget: Any, *, is_anew: bool = False) -> Played:
        return [
            epoch
            for case in cases
            for epoch in least([play(case, budget, is_anew=is_anew) for _ in range(repeats)])
        ]  # fmt: skip

    updates, anew = played(None), played(None, is_anew=True)
    print(f"rate {rate_of(updates):.0f} and {rate_of(anew):.0f} ns", file=sys.stderr, flush=True)
    result = {}
    for name, budget in CHOICES.items():
        chosen = played(budget)
        result[name] = regret(chosen, updates, anew)
        if told is not None:
            print(f"{name}:", *worse(chosen, updates, anew, told), sep="\n", file=sys.stderr, flush=True)
    result["updates only"] = regret(updates, updates, anew)
    result["always anew"] = regret(anew, updates, anew)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description="regret of the elastic choice", epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--epochs", type=float, metavar="MS", help="tell where a choice was worse by so much")
    given = parser.parse_args()
    if not given.cases or not CASES.keys() >= set(given.cases):
        parser.error(f"name cases: {', '.join(CASES)}")
    found: dict[str, dict[str, Any]] = {}
    for name in given.cases:
        outcome = measure(CASES[name](given.data), given.repeats, given.epochs)
        found[name] = {choice: asdict(one) for choice, one in outcome.items()}
        rows = [["choice", "counted", "worst epoch", "timed", "worst epoch", "s"]]
        rows += [
            [choice, *(f"{v:.2f}" for v in (o.counted, o.worst_counted, o.timed, o.worst_timed)), f"{o.seconds:.3f}"]
            for choice, o in outcome.items()
        ]
        print(f"\n== {name}", *aligned(rows), sep="\n", flush=True)
    everything = keep_results(HERE / "results" / "regret.json", found)
    series = {
        f"{choice}, {way}": {name: outcome[choice][way] for name, outcome in everything.items()}
        for choice in CHOICES
        for way in ("counted", "timed")
    }
    draw_bars(HERE / "plots" / "regret.png", "cost over the better way, in sum", "ratio", series)


if __name__ == "__main__":
    main()
