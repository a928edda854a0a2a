"""What tasks tell the driver: rows of a few kinds. Only those of a job that ended well count, and only the files that
they name; a repeated task writes others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from elastalog.backends.spark.values import MadeValues
from elastalog.backends.spark.word_files import WordFile


@dataclass(frozen=True, slots=True)
class StateWritten:
    """A file with the facts of a relation that a task owns."""

    share: int
    relation: str
    file: WordFile


@dataclass(frozen=True, slots=True)
class ChangesWritten:
    """A file with what has changed in the facts of a relation that a task owns. `heard`: of how many changes strata
    above must hear."""

    share: int
    relation: str
    file: WordFile
    heard: int


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


Result: TypeAlias = StateWritten | ChangesWritten | Worked | ValuesMade | RoundWritten | Spent | Exchanged | Failed
