"""What came of the tasks of a stratum, put together by the driver from their results."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from elastalog.backends.spark.results import (
    ChangesWritten,
    Failed,
    Fault,
    Result,
    RoundWritten,
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


@dataclass(slots=True)
class Outcome:
    """`returned`: what the procedure of a strategy did, for every share. `faults`: why tasks could not finish; if there
    are any, nothing else counts."""

    derivations: int = 0
    returned: list[Any] = field(default_factory=list)
    written: dict[str, Written] = field(default_factory=dict)
    faults: set[Fault] = field(default_factory=set)


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
            case Worked(_, derivations, returned):
                outcome.derivations += derivations
                if returned is not None:
                    outcome.returned.append(pickle.loads(returned))
            case Failed(_, fault):
                outcome.faults.add(fault)
            case ValuesMade() | RoundWritten():
                pass  # the driver has taken them: see `renumber` and `staged`
            case _:
                assert_never(result)
    return outcome
