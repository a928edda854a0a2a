"""Debugging: suggestions and localisations beside delta debugging, on the same engine.

`python -m benchmarks.debugging --data DIR [--seeds N] [--first-seed N] [--workload doop]` opens a workload; for each
seed it applies a random update of 50 insertions and 50 deletions of explicit facts, and asks about four fault sets of 3
to 10 derived facts that came or went. Which of the two questions about a fault set comes first alternates, because the
first pays for what both need. Delta debugging has the same trials, but tries whole updates, where answers from a
derivation graph are tried in the strata that decide about them. Prints a line for each question, then ratios at the
geometric mean and where the time went (finding what varies, derivations and proofs; 0/1 programs; verification, that
is trials of whole answers), the slowest, and those with the least advantage; writes benchmarks/results/debugging.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.batch import machine
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, data_folder

HALF = 50
FAULTS = (3, 10)
KINDS = ("unwanted", "unwanted", "missing", "mixed")


@dataclass(frozen=True, slots=True)
class Case:
    """One question, answered in both ways. `minimum` and `bound` are of ours; times are seconds, of the clock and of
    the processor. `is_first`: nothing was known about the faults."""

    seed: int
    kind: str
    question: str
    is_first: bool
    faults: int
    impact: int
    size: int
    minimum: bool
    bound: float
    seconds: float
    provenance: float
    solving: float
    trials: float
    number_of_trials: int
    number_of_limited_trials: int
    processor: float
    delta_size: int | None
    delta_seconds: float | None
    delta_trials: int | None
    delta_processor: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.delta_seconds is None else self.delta_seconds / self.seconds

    @property
    def processor_ratio(self) -> float | None:
        return None if self.delta_processor is None else self.delta_processor / self.processor


def explicit_facts(session: Any) -> list[tuple[str, tuple[Any, ...]]]:
    inputs = [
        name for name, relation in session.program.checked.relations.items()
        if any(directive.kind == "input" for directive in relation.directives)
    ]  # fmt: skip
    return [(name, fact) for name in sorted(inputs) for fact in sorted(session.explicit(name))]


def by_relation(facts: Sequence[tuple[str, tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, fact in facts:
        found.setdefault(name, []).append(fact)
    return found


def fault_sets(changes: Any, inputs: set[str], choice: random.Random) -> list[tuple[str, list[Any], list[Any]]]:
    """Four fault sets among the derived facts that came and went; fewer if there are too few such facts."""
    came = sorted((n, f) for n in changes if n not in inputs for f in changes[n].inserted)
    went = sorted((n, f) for n in changes if n not in inputs for f in changes[n].deleted)
    found = []
    for kind in KINDS:
        number = choice.randint(*FAULTS)
        unwanted = 0 if kind == "missing" else number if kind == "unwanted" else number // 2
        if len(came) >= unwanted and len(went) >= number - unwanted:
            found.append((kind, choice.sample(came, unwanted), choice.sample(went, number - unwanted)))
    return found


def ask(session: Any, question: str, unwanted: list[Any], missing: list[Any], limit: float, is_baseline: bool) -> Any:
    from elastalog.debugging.questions import Inquiry

    ask_it = getattr(session._answerers.debugger, question)
    began, processor = time.perf_counter(), time.process_time()
    answer = ask_it(Inquiry(unwanted, missing, time_limit=limit, is_baseline=is_baseline))
    return answer, time.perf_counter() - began, time.process_time() - processor


def run(options: argparse.Namespace) -> list[Case]:
    import elastalog

    workload = BY_NAME[options.workload]
    facts = workload.facts(data_folder(options.data))
    session = elastalog.open(workload.program, facts=facts)
    every = explicit_facts(session)
    inputs = {name for name, _ in every}
    gc.freeze()  # the million tuples of this script are no concern of the collector while questions are timed
    cases: list[Case] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        choice = random.Random(seed)
        chosen = choice.sample(every, 2 * HALF)
        inserted, deleted = by_relation(chosen[:HALF]), by_relation(chosen[HALF:])
        session.apply(deleted=inserted)
        changes = session.apply(inserted, deleted)
        for number, (kind, unwanted, missing) in enumerate(fault_sets(changes, inputs, choice)):
            # Whichever is asked first pays for what both need.
            order = ("suggest", "localise") if (seed + number) % 2 else ("localise", "suggest")
            for question in order:
                is_first = question == order[0]
                cases.append(
                    measure(session, options, seed, kind, question, is_first, unwanted, missing, changes.impact)
                )
                print(line(cases[-1]), flush=True)
        session.apply(inserted=deleted)
    return cases


def measure(
    session: Any, options: argparse.Namespace, seed: int, kind: str, question: str, is_first: bool, unwanted: list[Any],
    missing: list[Any], impact: int,
) -> Case:  # fmt: skip
    ours, seconds, processor = ask(session, question, unwanted, missing, options.time_limit, False)
    delta, delta_seconds, delta_processor = None, None, None
    if not options.without_delta:
        delta, delta_seconds, delta_processor = ask(session, question, unwanted, missing, options.delta_limit, True)
    spent = ours.seconds
    return Case(
        seed, kind, question, is_first, len(unwanted) + len(missing), impact, len(ours.elements), ours.minimum,
        ours.bound, seconds, spent.provenance, spent.solving, spent.trials, spent.number_of_trials,
        spent.number_of_limited_trials, processor, None if delta is None else len(delta.elements), delta_seconds,
        None if delta is None else delta.seconds.number_of_trials, delta_processor,
    )  # fmt: skip


def line(case: Case) -> str:
    proven = "minimum" if case.minimum else f"at least {case.bound:g}"
    parts = [
        f"seed {case.seed:3} {case.kind:8} {case.question:8} {case.faults:2} faults:",
        f"{case.size:2} ({proven}) {case.seconds:8.3f} s",
        f"[provenance {case.provenance:.3f} ({case.number_of_limited_trials} limited trials), 0/1 {case.solving:.3f},",
        f"verification {case.trials:.3f} ({case.number_of_trials})]",
    ]
    if case.delta_seconds is not None:
        parts.append(f"delta debugging {case.delta_size:2} {case.delta_seconds:8.2f} s, {case.delta_trials} trials,")
        parts.append(f"{case.ratio:.1f}x")
    return " ".join(parts)


def summary(cases: Sequence[Case]) -> list[str]:
    lines = []
    for question in ("suggest", "localise"):
        own = [case for case in cases if case.question == question]
        compared = [case for case in own if case.ratio is not None]
        if not own:
            continue
        proven, middle = sum(case.minimum for case in own), _median([case.seconds for case in own])
        lines.append(f"{question}: {len(own)} questions, {proven} proven minimum, median {middle:.3f} s")
        total = sum(case.seconds for case in own)
        parts = [("provenance", "provenance"), ("0/1 programs", "solving"), ("verification", "trials")]
        shares = ", ".join(f"{name} {sum(getattr(c, part) for c in own) / total:.0%}" for name, part in parts)
        lines.append(f"  time: {shares}")
        if compared:
            mean = _mean([case.ratio for case in compared])
            processor = _mean([case.processor_ratio for case in compared])
            firsts, seconds = ([case.ratio for case in compared if case.is_first == first] for first in (True, False))
            least = min(case.ratio or 0 for case in compared)
            smaller = sum(case.size < (case.delta_size or 0) for case in compared)
            larger = sum(case.size > (case.delta_size or 0) for case in compared)
            lines.append(
                f"  against delta debugging: {mean:.1f}x faster at the geometric mean (processor {processor:.1f}x),"
                f" least {least:.1f}x; asked first {_mean(firsts):.1f}x, second {_mean(seconds):.1f}x;"
                f" smaller in {smaller}, larger in {larger} of {len(compared)}"
            )
    slow = sorted(cases, key=lambda case: -case.seconds)[:5]
    lines += ["slowest:", *(f"  {line(case)}" for case in slow)]
    close = sorted((case for case in cases if case.ratio is not None), key=lambda case: case.ratio or 0)[:5]
    return [*lines, "least advantage:", *(f"  {line(case)}" for case in close)]


def _mean(ratios: Sequence[float | None]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(ratio or 1) for ratio in ratios) / max(len(ratios), 1))


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help=f"the data folder; also {DATA_VARIABLE}")
    parser.add_argument("--workload", default="doop", choices=sorted(BY_NAME))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each of our answers")
    parser.add_argument("--delta-limit", type=float, default=600.0, help="seconds for each of delta debugging")
    parser.add_argument("--without-delta", action="store_true", help="measure ours only")
    options = parser.parse_args()
    cases = run(options)
    for text in summary(cases):
        print(text)
    target = Path(HERE / "results" / "debugging.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"machine": machine(), "cases": [asdict(case) for case in cases]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
