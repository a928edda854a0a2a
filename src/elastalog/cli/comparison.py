"""One workload under one strategy, in a process of its own: what it took, and what it came to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elastalog.program.preprocessing import Preprocessing

if TYPE_CHECKING:
    from elastalog.diagnostics.diagnostic import ElastalogError
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.pipeline.streams import StreamedUpdate
    from elastalog.session import Session


@dataclass(frozen=True, slots=True)
class Workload:
    """A program, its facts, a stream of updates."""

    program: str
    facts: str
    updates: str
    jobs: int = 1
    timeout: float | None = None
    most_updates: int | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)


@dataclass(slots=True)
class Outcome:
    """`strategy` may name its marks too, as `bfc+linked`. `fault` says why it did not run to its end, `at` which update
    ended it, if one did. `sizes` are those of all relations after the last update."""

    strategy: str
    bootstrap: float = 0.0
    updates: list[float] = field(default_factory=list)
    memory: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    fault: str | None = None
    at: str | None = None

    @property
    def total(self) -> float:
        return sum(self.updates)


def run_alone(workload: Workload, strategy: str) -> Outcome:
    """Runs a workload in a fresh process, so that memory is its own. It does not outlive an interrupt of this one."""
    import pickle
    import subprocess
    import sys

    code = f"import sys; sys.path[:] = {sys.path!r}; from elastalog.cli.comparison import answer; answer()"
    pipe = subprocess.PIPE
    # In a session of its own, where Ctrl-C does not reach it.
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, start_new_session=True) as process:
        try:
            told, _ = process.communicate(pickle.dumps((workload, strategy)))
        finally:
            process.kill()
    if not told:
        return Outcome(strategy, fault="its process died, perhaps for lack of memory")
    found: Outcome = pickle.loads(told)
    return found


def answer() -> None:
    """In that process: runs what comes by standard input. Nothing comes if the other has ended meanwhile."""
    import os
    import pickle
    import sys

    given = sys.stdin.buffer.read()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever is printed is no part of the answer
        if given:
            out.write(pickle.dumps(run_here(*pickle.loads(given))))


def run_here(workload: Workload, strategy: str) -> Outcome:
    """Runs a workload in this process."""
    import elastalog
    from elastalog.pipeline.streams import read_stream, with_next

    name, _, marks = strategy.partition("+")
    outcome = Outcome(strategy)
    totals: dict[str, int] = {}
    try:
        began = time.perf_counter()
        options = workload.preprocessing
        program = elastalog.Program.load(
            workload.program, include=options.include, macros=dict(options.macros), preprocess=options.is_on
        )
        session = elastalog.open(
            program, workload.facts, strategy=name, jobs=workload.jobs, limits=elastalog.Limits(time=workload.timeout)
        )
        outcome.bootstrap = time.perf_counter() - began
        with session as db:
            stream = list(read_stream(workload.updates, db.program))[: workload.most_updates]
            for present, following in with_next(stream):
                outcome.at = present.batch
                update = _filled(db, present)
                upcoming = None
                if marks and following is not None and not present.diff.changes_rules:
                    outcome.at = following.batch
                    upcoming = _filled(db, following)
                    outcome.at = present.batch
                began = time.perf_counter()
                if upcoming is not None:
                    db.engine.announce(upcoming, marks)
                update.commit()
                outcome.updates.append(time.perf_counter() - began)
                for counter, number in update.stats.work.counters.as_dict().items():
                    totals[counter] = totals.get(counter, 0) + number
            outcome.at = None
            outcome.sizes = {relation: len(db[relation]) for relation in db}
    except elastalog.ElastalogError as fault:
        outcome.fault = _reason(fault)
    outcome.counters = totals
    outcome.memory = _peak_memory()
    return outcome


def _reason(fault: ElastalogError) -> str:
    """The first of its diagnostics in a line, with the file that it is about."""
    from elastalog.diagnostics.diagnostic import origin

    first = fault.diagnostics[0]
    return first.message if origin(first) is None else f"{origin(first)}: {first.message}"


def _filled(db: Session, streamed: StreamedUpdate) -> PendingUpdate:
    pending = db.update()
    pending.take(streamed.diff, streamed.batch)
    return pending


def _peak_memory() -> int:
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
