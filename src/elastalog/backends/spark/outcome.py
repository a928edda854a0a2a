"""What came of the tasks of a stratum, put together by the driver from their results."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from elastalog.backends.spark.results import (
    ChangesWritten,
    Exchanged,
    Failed,
    Fault,
    Result,
    RoundWritten,
    Spent,
    StateWritten,
    ValuesMade,
    Worked,
)
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.word_files import WordFile


@dataclass(frozen=True, slots=True)
class Written:
    """What tasks have written of one relation: files of its state, and of what has changed in it. `heard`: of how many
    changes strata above must hear."""

    states: tuple[WordFile, ...] = ()
    changes: tuple[WordFile, ...] = ()
    heard: int = 0

    @property
    def paths(self) -> set[str]:
        return {file.path for file in (*self.states, *self.changes)}


@dataclass(frozen=True, slots=True)
class TaskCosts:
    """What the tasks of a stratum took: the longest, the longest wait, the most memory of any, the bytes of all."""

    seconds: float = 0.0
    waited: float = 0.0
    rounds: int = 0
    peak: int = 0
    sent: int = 0

    def __str__(self) -> str:
        told = f"the longest task took {self.seconds:.2f} s and {self.peak >> 20:,} MiB"
        if not self.rounds:
            return told
        return f"{told}; {self.rounds:,} rounds, {self.sent:,} bytes exchanged, {self.waited:.2f} s waited"

    def with_spent(self, spent: Spent) -> TaskCosts:
        return replace(self, seconds=max(self.seconds, spent.seconds), peak=max(self.peak, spent.peak))

    def with_exchanged(self, done: Exchanged) -> TaskCosts:
        return replace(
            self, waited=max(self.waited, done.waited), rounds=max(self.rounds, done.rounds), sent=self.sent + done.sent
        )


@dataclass(slots=True)
class Outcome:
    """`returned`: what the procedure of a strategy did, for every share. `faults`: why tasks could not finish; if there
    are any, nothing else counts. `is_complete`: no `.limitsize` has cut them short."""

    derivations: int = 0
    is_complete: bool = True
    returned: list[Any] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)
    faults: set[Fault] = field(default_factory=set)
    costs: TaskCosts = TaskCosts()


def outcome_of(results: Iterable[Result], routings: Mapping[str, Routing]) -> Outcome:
    """Puts results together; `routings`: how each relation of the stratum is shared."""
    outcome = Outcome(written=dict.fromkeys(routings, Written()))
    for result in results:
        match result:
            case StateWritten(share, name, file):
                found = outcome.written[name]
                owned = replace(file, routing=routings[name], share=share)
                outcome.written[name] = replace(found, states=(*found.states, owned))
            case ChangesWritten(share, name, file, heard):
                found = outcome.written[name]
                owned = replace(file, routing=routings[name], share=share)
                outcome.written[name] = replace(found, changes=(*found.changes, owned), heard=found.heard + heard)
            case Worked(_, derivations, returned, is_complete):
                outcome.derivations += derivations
                outcome.is_complete &= is_complete
                if returned is not None:
                    outcome.returned.append(pickle.loads(returned))
            case Spent():
                outcome.costs = outcome.costs.with_spent(result)
            case Exchanged():
                outcome.costs = outcome.costs.with_exchanged(result)
            case Failed(_, fault):
                outcome.faults.add(fault)
            case ValuesMade() | RoundWritten():
                pass  # the driver has taken them: see `renumber` and `staged`
            case _:
                assert_never(result)
    return outcome
