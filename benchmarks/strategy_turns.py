"""Strategies measured by turns: each in a process of its own, and all make a step before any makes the next.

A machine whose speed changes by the minute then changes alike for all of them. A process says that it is ready, makes
a step for each line that it reads, and says what that took in a line of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Literal

from benchmarks.strategy_cases import EXPERIMENTS, Case, Options, Step
from benchmarks.workloads import HERE
from elastalog.settings import SETTINGS


@dataclass(slots=True)
class Outcome:
    strategy: str
    size: int
    bootstrap: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    memory: int = 0
    problem: str | None = None


# --- who asks --------------------------------------------------------------------------------------------------------


class Player:
    """A strategy in its process; what goes wrong there is noted in the outcome, and ends it."""

    def __init__(self, name: str, size: int, strategy: str, options: Options) -> None:
        self.outcome = Outcome(strategy, size)
        self._seconds_left = options.timeout
        self._timeout = options.timeout
        self._complaints: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (until `close`)
        request = json.dumps({"name": name, "size": size, "strategy": strategy, "options": asdict(options)})
        command = [sys.executable, "-m", "benchmarks.strategy_turns", request]
        self._process = subprocess.Popen(
            command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )
        self.steps = self._hear().get("steps", 0)

    def step(self) -> None:
        if self._process.stdin is None or self.outcome.problem:
            return
        with suppress(BrokenPipeError):
            print(file=self._process.stdin, flush=True)
        said = self._hear()
        if said:
            self.outcome.seconds.setdefault(said["label"], []).append(said["seconds"])
            for counter, value in said["counters"].items():
                self.outcome.counters[counter] = self.outcome.counters.get(counter, 0) + value

    def _hear(self) -> dict[str, Any]:
        """What the process says next; nothing if it has ended, or does not say it in time."""
        assert self._process.stdout is not None
        began = time.monotonic()
        alarm = threading.Timer(self._seconds_left, self._process.kill)
        alarm.start()
        line = self._process.stdout.readline()
        alarm.cancel()
        self._seconds_left -= time.monotonic() - began
        if not line:
            self._note_end()
            return {}
        said: dict[str, Any] = json.loads(line)
        self.outcome.memory = said["memory"]
        self.outcome.bootstrap = said.get("bootstrap", self.outcome.bootstrap)
        return said

    def _note_end(self) -> None:
        status = self._process.wait()
        self._complaints.seek(0)
        complaints = self._complaints.read().strip().splitlines()
        is_late = self._seconds_left <= 0
        self.outcome.problem = (
            f"more than {self._timeout:.0f} s" if is_late else [f"exit code {status}", *complaints][-1]
        )

    def close(self) -> Outcome:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        status = self._process.wait()
        if status != 0 and not self.outcome.problem:
            self._note_end()
        self._complaints.close()
        return self.outcome


def measure_by_turns(name: str, size: int, strategies: Iterable[str], options: Options) -> list[Outcome]:
    """Every strategy on a case, one after the other in every step."""
    players = []
    for strategy in strategies:
        players.append(Player(name, size, strategy, options))
        print(f"{name} {size or ''} {strategy}: {players[-1].outcome.problem or 'ready'}", file=sys.stderr, flush=True)
    for turn in range(max((player.steps for player in players), default=0)):
        first = turn % len(players)  # whoever goes first may find other caches than those behind it
        for player in (*players[first:], *players[:first]):
            player.step()
    return [player.close() for player in players]


def measure(name: str, size: int, strategy: str, options: Options) -> Outcome:
    """One strategy alone."""
    (outcome,) = measure_by_turns(name, size, [strategy], options)
    return outcome


# --- who answers -----------------------------------------------------------------------------------------------------


def play(name: str, size: int, strategy: str, options: Options) -> None:
    """Makes the steps of a case, each when it is asked to."""
    import elastalog

    experiment = EXPERIMENTS[name]
    case = experiment.make(options, size, options.repeats or experiment.repeats)
    budget: float | Literal["auto"] | None = None if strategy.endswith("!") else "auto"
    strategy = strategy.rstrip("!")
    searched = search_without_limit() if options.is_unbounded else None
    warm_up(strategy)
    began = time.process_time()
    with elastalog.open(case.program, case.facts, strategy=strategy, budget=budget) as db:
        bootstrap = time.process_time() - began
        make_indexes(db, case)
        say(bootstrap=bootstrap, steps=len(case.steps))
        for step, _ in zip(case.steps, sys.stdin, strict=False):
            make_step(db, step, searched)


def make_step(db: Any, step: Step, searched: Callable[[], int] | None) -> None:
    label, deleted, inserted = step
    update = db.update()
    for relation, rows in deleted.items():
        update.delete(relation, rows)
    for relation, rows in inserted.items():
        update.insert(relation, rows)
    before = 0 if searched is None else searched()
    began = time.process_time()
    update.commit()
    seconds = time.process_time() - began
    counters = dict(update.stats.work.counters.as_dict())
    if searched is not None:
        counters["rows"] = searched() - before
    say(label=label, seconds=seconds, counters=counters)


def say(**what: Any) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({**what, "memory": memory}), flush=True)


def search_without_limit() -> Callable[[], int]:
    """From now on other derivations are looked for backwards whatever it takes, as the papers do, and heads with sums
    are not solved for what is known. Returns what tells how many rows that has gone through."""
    from elastalog.backends.kernel.sets import heads_backward, set_update
    from elastalog.planning import order

    searches: list[heads_backward.BackwardSearch] = []

    class Counted(heads_backward.BackwardSearch):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            searches.append(self)

    SETTINGS.backward_limit = 1 << 60
    vars(order)["solve_equation"] = lambda *_: None
    vars(set_update)["BackwardSearch"] = Counted
    return lambda: sum(effort.rows for search in searches for effort in search._efforts.values())


def make_indexes(db: Any, case: Case) -> None:
    """One fact of every relation that a step deletes from goes and comes back, so that no update that is measured makes
    plans and indexes."""
    some = {name: rows.slice(0, 1) for _, deleted, _ in case.steps for name, rows in deleted.items()}
    db.apply(deleted=some)
    db.apply(inserted=some)


def warm_up(strategy: str) -> None:
    """Loads compiled operators before anything is measured."""
    import elastalog

    program = """
    .decl a(x: number, y: number)
    .decl b(x: number, y: number)
    b(x, y) :- a(x, y).
    b(x, z) :- b(x, y), a(y, z).
    """
    with elastalog.open(program, {"a": [(1, 2), (2, 3), (1, 3)]}, strategy=strategy) as db:
        db.apply({"a": [(3, 4)]}, {"a": [(1, 2)]})
        db.apply({"a": [(1, 2)]}, {"a": [(1, 3)]})


def main(arguments: Sequence[str]) -> None:
    request = json.loads(arguments[0])
    play(request["name"], request["size"], request["strategy"], Options(**request["options"]))


if __name__ == "__main__":
    main(sys.argv[1:])
