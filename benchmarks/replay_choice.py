"""The elastic choice replayed on recorded streams: what it costs against the better of update and bootstrap.

`python -m benchmarks.replay_choice [--record CASE ...] [--threads N] [--data DIR]` first plays streams to `--record`
(those of `benchmarks.regret`), with updates only and with every stratum evaluated anew, and keeps what each counted in
each epoch in benchmarks/results/choice. Then the cost model chooses on all streams that are kept, one after the other,
which takes less than a second each, and the sums are printed: as counted, in seconds of the processor, and for the
worst epoch. Constants of the model may be changed and judged in between: those it has were chosen on CHOSEN_BY, and the
other streams judge.

An update that is abandoned is reckoned in proportion to the effort that it had come to. `--threads`: as if so many had
shared what is evaluated anew.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

from benchmarks.regret import CASES, AlwaysAnew, Case
from benchmarks.strategies import aligned
from benchmarks.workloads import DATA_VARIABLE, HERE
from elastalog.backends.watch import ROWS_A_DERIVATION, WITH_REST
from elastalog.evaluation.costs import AUTO, CostModel, How
from elastalog.evaluation.experience import Bootstrap, Experience, Features
from elastalog.evaluation.strategies import elastic
from elastalog.planning.logical import LogicalStratum
from elastalog.settings import SETTINGS

CHOSEN_BY = ("bursts", "closure-TG", "crdt", "sspe")
FOLDER = HERE / "results" / "choice"
OF_STEP = 0.37
LEAST_COST = 50_000
"""Epochs whose better choice costs less say nothing of the worst."""

Seen = dict[str, Any]
Epochs = list[dict[str, Seen]]


def record(case: Case, *, is_anew: bool) -> tuple[dict[str, Any], Epochs]:
    """What is known after the first bootstrap, and what every stratum counted in every epoch of a stream."""
    import elastalog

    with elastalog.open(case.program, case.facts, budget=None, engine="local") as db:
        strategy: Any = db._epochs.strategy
        first = strategy.costs.learnt()
        if is_anew:
            model = AlwaysAnew(None)
            model.become(strategy.costs)
            strategy.costs = model
        backend, watch, update_stratum = db._backend, strategy.watch, strategy.update_stratum
        began, epochs, half = 0, list[dict[str, Seen]](), list[int]()

        def extend(derivations: int, rows: int) -> None:
            half.append(watch.effort - began + max(derivations, rows // ROWS_A_DERIVATION))

        def look(backend: Any, stratum: Any, reach: Any, counters: Any) -> Any:
            nonlocal began
            counted = ("derivations", "effort", "touched", "rows", "rounds")
            before, began, clock = [getattr(watch, name) for name in counted], watch.effort, time.process_time()
            half.clear()
            features = elastic.features_of(backend, stratum, reach.changes, elastic.is_mostly_loss(backend))
            work = update_stratum(backend, stratum, reach, counters)
            epochs[-1][str(stratum.number)] = {
                "how": work.how, "features": astuple(features),
                "half": half[0] if half else None, "seconds": time.process_time() - clock,
                **{name: getattr(watch, name) - then for name, then in zip(counted, before, strict=True)},
            }  # fmt: skip
            return work

        watch.extend, strategy.update_stratum = extend, look
        db.engine.warm()
        for deleted, inserted in case.steps:
            epochs.append({})
            db.apply(inserted, deleted)
        assert backend is db._backend
        return first, epochs


class Replay:
    """One stream under the model, as it is now."""

    def __init__(self, first: dict[str, Any], updates: Epochs, anew: Epochs, threads: int) -> None:
        self._left = threads**-SETTINGS.thread_gain
        self._model = CostModel(AUTO)
        self._model.recall(first)
        for known in self._model._known.values():
            known.bootstrap = known.bootstrap and self._shared(known.bootstrap)
        self._epochs = zip(updates, anew, strict=True)

    def _shared(self, bootstrap: Bootstrap) -> Bootstrap:
        return replace(bootstrap, cost=self._left * bootstrap.cost, left=self._left)

    def epochs(self) -> Iterator[list[float]]:
        """What the choice cost in every epoch, and the better choice; counted, and in seconds."""
        for updates, anew in self._epochs:
            sums = [0.0] * 4
            for number, update in updates.items():
                other = anew.get(number)
                if other is not None and (update["how"], other["how"]) == ("update", "recompute"):
                    stratum = LogicalStratum(int(number), ("r",), (), None, is_recursive=True)
                    both = self._stratum(stratum, update, other)
                    sums = [known + more for known, more in zip(sums, both, strict=True)]
            yield sums

    def _stratum(self, stratum: LogicalStratum, update: Seen, other: Seen) -> tuple[float, float, float, float]:
        features, model = Features(*update["features"]), self._model
        steps, effort, least = update["derivations"] + update["rows"], update["effort"], SETTINGS.least_budget
        updating = OF_STEP * (max(steps, effort) + update["touched"])
        counted = Bootstrap.counted(features.inputs, other["derivations"], other["rows"], other["rounds"])
        evaluating, seconds = self._shared(counted), self._left * other["seconds"]
        anew = evaluating.rebuild_cost(features.facts)
        better = min(updating, anew), min(update["seconds"], seconds)
        known: Experience = model.known(stratum)
        spent: float | None = None
        if known.may_skip or effort > least:
            begun = 0 if known.may_skip else least
            forecast = model.choose(stratum, features)
            allowed = max(forecast.derivations_allowed or 0, least)
            if forecast.how is How.RECOMPUTE:
                spent = begun
            elif (update["half"] or 0) > allowed:
                spent = allowed
            elif effort > (extended := max(allowed, WITH_REST * (update["half"] or 0))):
                spent = extended
            if spent is None:
                model.updated(stratum, features, effort, steps, update["touched"] or None)
            elif forecast.how is not How.RECOMPUTE:
                model.abandoned(stratum, features, int(spent))
        else:
            model.updated(stratum, Features(*update["features"][:2]), effort, steps, update["touched"] or None)
        if spent is None:
            return updating, better[0], update["seconds"], better[1]
        model.bootstrapped(stratum, evaluating)
        model.rebuilt(stratum, features, other["touched"])
        part = spent / max(effort, 1)
        return part * updating + anew, better[0], part * update["seconds"] + seconds, better[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="replays the choice", epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", nargs="*", default=[], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in given.record:
        played = [[record(case, is_anew=is_anew) for is_anew in (False, True)] for case in CASES[name](given.data)]
        (FOLDER / f"{name}.json").write_text(json.dumps(played))
    rows, sums = [["stream", "counted", "timed", "worst epoch"]], dict[bool, list[float]]()
    for path in sorted(FOLDER.glob("*.json")):
        epochs = [
            epoch
            for (first, updates), (_, anew) in json.loads(path.read_text())
            for epoch in Replay(first, updates, anew, given.threads).epochs()
        ]
        whole = [math.fsum(values) for values in zip(*epochs, strict=True)]
        worst = max((epoch[0] / epoch[1] for epoch in epochs if epoch[1] > LEAST_COST), default=1.0)
        rows.append([path.stem, *(f"{v:.3f}" for v in (whole[0] / whole[1], whole[2] / whole[3])), f"{worst:.2f}"])
        sums.setdefault(path.stem.removesuffix(" (other)") in CHOSEN_BY, []).append(math.log(whole[0] / whole[1]))
    for is_chosen, ratios in sums.items():
        mean = math.exp(sum(ratios) / len(ratios))
        rows.append(["streams it was chosen by" if is_chosen else "streams that judge it", f"{mean:.3f}", "", ""])
    print(*aligned(rows), sep="\n")


if __name__ == "__main__":
    main()
