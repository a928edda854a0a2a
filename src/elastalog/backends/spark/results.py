"""What tasks tell the driver, rows of a few kinds, and what the driver puts together from them. Only those of a job
that ended well count, and only the files that they name; a repeated task writes others."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias, assert_never

from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import MadeValues
from elastalog.backends.spark.word_files import WordFile


@dataclass(frozen=True, slots=True)
class FileWritten:
    """A file with the facts of a relation that a task owns, or with what has changed in them. `heard`: of how many
    changes strata above must hear, None of a state."""

    share: int
    relation: str
    file: WordFile
    heard: int | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """What a task has enumerated, and what the procedure of a strategy returned, pickled, if there was one.
    `is_complete`: no `.limitsize` has cut its evaluation short."""

    share: int
    derivations: int
    outcome: bytes | None = None
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class ValuesMade:
    """Values that the files of a task have and the driver's dictionary may not."""

    share: int
    values: MadeValues


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a task between two stages: the facts of its copies, in order, of which those from `start` on are
    new, the iteration that it is in, and what it has enumerated."""

    files: Mapping[str, WordFile]
    start: Mapping[str, int]
    iteration: int
    derivations: int


@dataclass(frozen=True, slots=True)
class RoundWritten:
    """What a task gives others in a round, where rounds are stages, and what it has saved, if it does."""

    share: int
    location: str
    state: SavedState | None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the work of a task took: seconds, and the most memory that its process has had. Brought back with the other
    results: Spark's accumulators count a task that is repeated twice."""

    share: int
    seconds: float
    peak: int


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a task did to exchange: the rounds, the seconds that it waited for others, the bytes that it gave them."""

    share: int
    rounds: int
    waited: float
    sent: int


class Fault(Enum):
    """Why a task could not finish."""

    NEW_VALUES = "it made values that other tasks, or rules, would have to know by the driver's numbers"
    OVER_BUDGET = "it has spent the budget of the update"
    ERROR = "it met an error of the program, which the driver will meet too, where it can be shown well"


@dataclass(frozen=True, slots=True)
class Failed:
    """A task could not finish; an exception would only be repeated."""

    share: int
    fault: Fault


Result: TypeAlias = FileWritten | Worked | ValuesMade | RoundWritten | Spent | Exchanged | Failed


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
            case FileWritten(share, name, file, heard):
                found = outcome.written[name]
                owned = replace(file, routing=routings[name], share=share)
                if heard is None:
                    outcome.written[name] = replace(found, states=(*found.states, owned))
                else:
                    outcome.written[name] = replace(found, changes=(*found.changes, owned), heard=found.heard + heard)
            case Worked(_, derivations, returned, is_complete):
                outcome.derivations += derivations
                outcome.is_complete &= is_complete
                if returned is not None:
                    outcome.returned.append(pickle.loads(returned))
            case Spent(_, seconds, peak):
                known = outcome.costs
                outcome.costs = replace(known, seconds=max(known.seconds, seconds), peak=max(known.peak, peak))
            case Exchanged(_, rounds, waited, sent):
                known = outcome.costs
                longest, most = max(known.waited, waited), max(known.rounds, rounds)
                outcome.costs = replace(known, waited=longest, rounds=most, sent=known.sent + sent)
            case Failed(_, fault):
                outcome.faults.add(fault)
            case ValuesMade() | RoundWritten():
                pass  # the driver has taken them: see `renumber` and `staged`
            case _:
                assert_never(result)
    return outcome
