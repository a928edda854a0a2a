"""What the elastic choice counts, fitted to what it took: the unit costs of `evaluation.experience`.

`python -m benchmarks.fit_costs [--fit CASE ...] [--test CASE ...] [--data DIR] [--repeats N]`; cases are those of
`benchmarks.regret`. Streams are played twice, with updates only and with every stratum evaluated anew, and what each
stratum counted in each epoch is set beside the seconds of the processor that it took, the least of the repeats.

An update of a stratum should take something for every derivation, every row and every fact that it touched; a bootstrap
for every derivation, row, fact and round. Both are fitted by least squares of relative errors, no coefficient below 0,
every case with the same weight. The unit is what a derivation of a
bootstrap took on the whole. Coefficients come from the streams to `--fit` and from no others; what they say of those to
`--test` is what counts: errors are in powers of two, of updates, of bootstraps, and of the ratio of the two, on which
the choice rests.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.regret import CASES, AlwaysAnew, Case
from benchmarks.strategies import aligned
from benchmarks.workloads import DATA_VARIABLE
from elastalog.evaluation.strategies import elastic
from elastalog.settings import SETTINGS

FITTED = ("closure-TG", "sspe", "bursts", "crdt")
TESTED = ("el-completion", "lubm", "ways", "usroads-reachability")
LEAST_SECONDS = 0.0005
"""Strata that took less tell more of the clock than of themselves."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a stratum counted in an epoch, and what it took."""

    how: str
    is_loss: bool
    derivations: int
    effort: int
    touched: int
    rows: int
    rounds: int
    facts: int
    seconds: float


Epochs = list[dict[int, Seen]]
Feature = Callable[[Seen], float]

UPDATES: Mapping[str, Feature] = {
    "derivation": lambda seen: seen.derivations,
    "row": lambda seen: seen.rows,
    "touched": lambda seen: seen.touched,
}
BOOTSTRAPS: Mapping[str, Feature] = {
    "derivation": lambda seen: seen.derivations,
    "row": lambda seen: min(max(seen.rows, 1.5 * seen.derivations), 4 * seen.derivations),
    "row in vain": lambda seen: max(seen.rows - 4 * seen.derivations, 0),
    "fact": lambda seen: seen.facts,
    "round": lambda seen: seen.rounds,
    "once": lambda seen: 1,
}


def play(case: Case, *, is_anew: bool) -> Epochs:
    """Plays a stream, and looks at every stratum."""
    import elastalog

    with elastalog.open(case.program, case.facts, budget=None, engine="local") as db:
        strategy: Any = db._epochs.strategy
        if is_anew:
            model = AlwaysAnew(None)
            model.become(strategy.costs)
            strategy.costs = model
        update_stratum, watch, size = strategy.update_stratum, strategy.watch, db._backend.changes.size
        epochs: Epochs = []

        def counted() -> np.ndarray:
            return np.array((watch.derivations, watch.effort, watch.touched, watch.rows, watch.rounds))

        def look(backend: Any, stratum: Any, reach: Any) -> Any:
            facts, before, began = sum(map(size, stratum.relations)), counted(), time.process_time()
            work = update_stratum(backend, stratum, reach)
            took = time.process_time() - began
            derivations, effort, touched, rows, rounds = map(int, counted() - before)
            epochs[-1][stratum.number] = Seen(
                work.how, elastic.is_mostly_loss(backend), derivations, effort, touched, rows, rounds, facts, took
            )
            return work

        strategy.update_stratum = look
        db.engine.warm()
        for deleted, inserted in case.steps:
            epochs.append({})
            db.apply(inserted, deleted)
        return epochs


def least(played: Sequence[Epochs]) -> Epochs:
    """The same with the least seconds."""
    return [
        {number: replace(seen, seconds=min(p[i][number].seconds for p in played)) for number, seen in epoch.items()}
        for i, epoch in enumerate(played[0])
    ]


def pairs_of(name: str, data: str | None, repeats: int) -> list[tuple[Seen, Seen]]:
    """What strata took in an update, and anew, wherever both were more than nothing."""

    def pairs() -> Iterator[tuple[Seen, Seen]]:
        for case in CASES[name](data):
            updates, anew = (least([play(case, is_anew=is_anew) for _ in range(repeats)]) for is_anew in (False, True))
            for updated, evaluated in zip(updates, anew, strict=True):
                for number, seen in updated.items():
                    other = evaluated.get(number)
                    if other is not None and (seen.how, other.how) == ("update", "recompute"):
                        yield seen, other

    return [
        (seen, other)
        for seen, other in pairs()
        if seen.effort > SETTINGS.least_budget and min(seen.seconds, other.seconds) > LEAST_SECONDS
    ]


def fit(cases: Sequence[Sequence[Seen]], features: Mapping[str, Feature]) -> np.ndarray:
    """Nanoseconds for every feature, none below 0: what is negative is left out, the most negative first."""
    seen = [one for case in cases for one in case]
    weights = np.concatenate([np.full(len(case), len(case) ** -0.5) for case in cases])
    counts = np.array([[feature(one) for feature in features.values()] for one in seen], float)
    relative = counts * (weights / (1e9 * np.array([one.seconds for one in seen])))[:, None]
    kept = list(range(len(features)))
    while True:
        found, *_ = np.linalg.lstsq(relative[:, kept], weights, rcond=None)
        if not kept or (found >= 0).all():
            coefficients = np.zeros(len(features))
            coefficients[kept] = found
            return coefficients
        kept.pop(int(found.argmin()))


def errors(seen: Sequence[Seen], features: Mapping[str, Feature], coefficients: np.ndarray) -> np.ndarray:
    """By how many powers of two each is said to take more than it took."""
    counts = np.array([[feature(one) for feature in features.values()] for one in seen], float)
    found: np.ndarray = np.log2(np.maximum(counts @ coefficients, 1) / (1e9 * np.array([one.seconds for one in seen])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="fit what is counted", epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", nargs="*", default=FITTED, metavar="CASE", choices=CASES)
    parser.add_argument("--test", nargs="*", default=TESTED, metavar="CASE", choices=CASES)
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    if not set(given.fit).isdisjoint(given.test):
        parser.error("a case is fitted or tested, not both")
    found = {name: pairs_of(name, given.data, given.repeats) for name in (*given.fit, *given.test)}
    found = {name: pairs for name, pairs in found.items() if pairs}
    fitted = [pairs for name, pairs in found.items() if name in given.fit]
    of_updates = fit([[seen for seen, _ in pairs] for pairs in fitted], UPDATES)
    of_bootstraps = fit([[other for _, other in pairs] for pairs in fitted], BOOTSTRAPS)
    bootstraps = [other for pairs in fitted for _, other in pairs]
    unit = 1e9 * sum(one.seconds for one in bootstraps) / sum(one.derivations for one in bootstraps)
    for told, features, coefficients in (
        ("updates", UPDATES, of_updates),
        ("bootstraps", BOOTSTRAPS, of_bootstraps),
    ):
        listed = ", ".join(
            f"{name} {c:.3g} ns = {c / unit:.3g}" for name, c in zip(features, coefficients, strict=True)
        )
        print(f"{told}: {listed}")
    rows = [["case", "", "strata", "updates: mean", "rms", "bootstraps: mean", "rms", "ratio: mean", "rms"]]
    for name, pairs in found.items():
        updates = errors([seen for seen, _ in pairs], UPDATES, of_updates)
        anew = errors([other for _, other in pairs], BOOTSTRAPS, of_bootstraps)
        shown = [f"{v:.2f}" for e in (updates, anew, updates - anew) for v in (e.mean(), np.sqrt((e**2).mean()))]
        rows.append([name, "fitted" if name in given.fit else "tested", str(len(pairs)), *shown])
    print(*aligned(rows), sep="\n")


if __name__ == "__main__":
    main()
