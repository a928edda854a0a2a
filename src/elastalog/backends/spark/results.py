"""What tasks tell the driver, and what the driver puts together from it. Only the results of a job that ended well
count, and only the files that they name; a repeated task writes others."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import MadeValues
from elastalog.backends.spark.word_files import WordFile


@dataclass(frozen=True, slots=True)
class FileWritten:
    """A file with the facts of a relation that a task owns, or with what has changed in them. `heard`: of how many
    changes strata above must hear, None of a state."""

    relation: str
    file: WordFile
    heard: int | None = None


class Fault(Enum):
    """Why a task could not finish."""

    NEW_VALUES = "it made values that other tasks, or rules, would have to know by the driver's numbers"
    UNLINKED = "it cannot be linked with another task"
    OVER_BUDGET = "it has spent the budget of the update"
    ERROR = "it met an error of the program, which the driver will meet too, where it can be shown well"


@dataclass(slots=True)
class Result:
    """What the task of a share tells the driver. `is_complete`: no `.limitsize` has cut its evaluation short.
    `returned`: what the procedure of a strategy returned, pickled, if there was one. `made`: values that its files have
    and the driver's dictionary may not. `fault`: why it could not finish; an exception would only be repeated.

    What its work took: seconds, and the most memory that its process has had; the rounds of an exchange, the seconds
    that it waited for others, the bytes that it gave them. Spark's accumulators count a task that is repeated twice."""

    share: int
    files: list[FileWritten] = field(default_factory=list)
    derivations: int = 0
    is_complete: bool = True
    returned: bytes | None = None
    made: MadeValues | None = None
    fault: Fault | None = None
    seconds: float = 0.0
    peak: int = 0
    rounds: int = 0
    waited: float = 0.0
    sent: int = 0


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
    """What the tasks of a stratum took: the time of the longest, the longest wait, the most rounds, the most memory of
    any, and the bytes that all exchanged."""

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """`returned`: what the procedure of a strategy did, for every share. `faults`: why tasks could not finish; if there
    are any, nothing else counts. `is_complete`: no `.limitsize` has cut them short."""

    derivations: int
    is_complete: bool
    returned: list[Any]
    written: Mapping[str, Written]
    faults: set[Fault]
    costs: TaskCosts


def outcome_of(results: Sequence[Result], routings: Mapping[str, Routing]) -> Outcome:
    """Puts results together; `routings`: how each relation of the stratum is shared."""
    written = dict.fromkeys(routings, Written())
    for result in results:
        for told in result.files:
            name, found = told.relation, written[told.relation]
            owned = replace(told.file, routing=routings[name], share=result.share)
            if told.heard is None:
                written[name] = replace(found, states=(*found.states, owned))
            else:
                written[name] = replace(found, changes=(*found.changes, owned), heard=found.heard + told.heard)
    return Outcome(
        sum(result.derivations for result in results),
        all(result.is_complete for result in results),
        [pickle.loads(result.returned) for result in results if result.returned is not None],
        written,
        {result.fault for result in results if result.fault is not None},
        TaskCosts(
            max((result.seconds for result in results), default=0.0),
            max((result.waited for result in results), default=0.0),
            max((result.rounds for result in results), default=0),
            max((result.peak for result in results), default=0),
            sum(result.sent for result in results),
        ),
    )
