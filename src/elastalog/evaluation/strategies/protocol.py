"""What strategies do, counted under the same names for all of them; and the bootstrap, in which each evaluates every
stratum from the explicit facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from itertools import chain
from threading import Lock
from typing import Any, Final

from elastalog.analysis.program import CheckedProgram
from elastalog.backends.protocol import Backend
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.costs import How
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum, shown_names

REBUILT: Final = (How.RECOMPUTE, "the rules make another stratum of it")
"""How and why of a stratum that cannot be maintained since its rules have changed."""


def rebuilt(backend: Backend, stratum: LogicalStratum) -> tuple[How, str]:
    """How and why of a stratum that is not maintained."""
    if stratum.dominance:
        why = "ranks are kept by strategy `elastic` alone, and not where rules change"
        return How.RECOMPUTE, stratum.why_in_rounds or why
    if any(backend.program.relations[name].choices for name in stratum.relations):
        return How.RECOMPUTE, "a choice domain chooses again"
    return REBUILT


@dataclass(slots=True)
class StratumWork:
    """What was done to one stratum and why, how many derivations were enumerated, and how long it took. `cost`: all of
    it as counted, in derivations of a usual bootstrap; `other`: what the other choice should have cost. None where
    there was no choice. `spent`: what an update took, and `bootstrap`: what a bootstrap takes, in derivations."""

    stratum: int
    relations: tuple[str, ...]
    how: How
    reason: str
    derivations: int
    seconds: float
    cost: int | None = None
    other: int | None = None
    spent: int | None = None
    bootstrap: int = 0

    def __str__(self) -> str:
        told = counted(self.derivations, "derivation")
        return f"{shown_names(self.relations)}: {self.how}, {told} ({self.why})"

    @property
    def why(self) -> str:
        """The reason, and what came of it. Few ever look at it."""
        if self.spent is None:
            return self.reason
        compared = f", a recompute takes {self.bootstrap:,}" if self.bootstrap else ""
        return f"{self.reason}; it cost {self.spent:,}{compared}"


_WRITING = Lock()
"""Held while what was put off is written down: several threads may ask at once."""


class Work:
    """What an epoch cost, stratum by stratum, without those that nothing touched. `write` turns a part that is not the
    work on one stratum yet into such works, when `strata` is read; without it parts are left as they are."""

    __slots__ = ("_counters", "_parts", "_write")

    def __init__(
        self,
        parts: list[Any] | None = None,
        counters: Counters | None = None,
        write: Callable[[Any], Iterable[StratumWork]] | None = None,
    ) -> None:
        self._parts: list[Any] = [] if parts is None else parts
        self._counters = counters
        self._write = write

    @property
    def strata(self) -> list[StratumWork]:
        if self._write is not None:
            with _WRITING:
                if self._write is not None:
                    works = chain.from_iterable(map(self._write, self._parts))
                    # Facts of a stratum that went, and those that came, are told once.
                    told = {id(one) if one.derivations else (one.stratum, one.reason): one for one in works}
                    self._parts, self._write = [*told.values()], None
        return self._parts

    @property
    def derivations(self) -> int:
        return sum([stratum.derivations for stratum in self.strata])

    @property
    def counters(self) -> Counters:
        """What each phase moved; `derivations` are those of all strata until now."""
        if self._counters is None:
            self._counters = Counters()
        self._counters.derivations = self.derivations
        return self._counters


@dataclass(slots=True)
class Counters:
    """How many facts each phase moved. They count effects, not candidates: each fact once a phase, however many
    derivations led to it.

    `over_deletions`: facts that DRed and DRed^c deleted by rules before looking for other derivations;
    `rederivations`: those they found again. `deletions`: facts that lost a derivation and had to be checked
    (backward/forward checking), or whose counter reached 0 (Counting), or that left their level (dense). `backward`:
    facts whose derivations were searched; `forward`: facts found to follow from proved ones. `insertions`: facts
    added by rules. `marked_explicit`, `marked_implicit`: facts that look-ahead has marked because the next update
    questions them; `marked_positive`: implicit facts deleted now that the next update certainly brings back.
    `derivations`: derivations enumerated, in all phases."""

    over_deletions: int = 0
    rederivations: int = 0
    insertions: int = 0
    deletions: int = 0
    backward: int = 0
    forward: int = 0
    marked_explicit: int = 0
    marked_implicit: int = 0
    marked_positive: int = 0
    derivations: int = 0

    def __iadd__(self, other: Counters) -> Counters:
        # Written out: this happens for every stratum of an update.
        self.over_deletions += other.over_deletions
        self.rederivations += other.rederivations
        self.insertions += other.insertions
        self.deletions += other.deletions
        self.backward += other.backward
        self.forward += other.forward
        self.marked_explicit += other.marked_explicit
        self.marked_implicit += other.marked_implicit
        self.marked_positive += other.marked_positive
        self.derivations += other.derivations
        return self

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


Learn = Callable[[LogicalStratum, int], None]
"""Takes note of what a stratum cost, in derivations."""


def evaluate_all(backend: Backend, learn: Learn | None = None) -> Work:
    """Evaluates the strata in order; what each cost is told to `learn`."""
    done: list[Any] = []
    began = time.perf_counter()
    for stratum in backend.program.strata:
        try:
            derivations = backend.bootstrap(stratum)
        except LimitReached as error:
            raise with_growing_rules(error, [stratum], backend.program.checked) from None
        ended = time.perf_counter()
        if learn is not None:
            learn(stratum, derivations)
        done.append((stratum, derivations, ended - began))
        began = ended
    return Work(done, write=_of_first_epoch)


def _of_first_epoch(done: tuple[LogicalStratum, int, float]) -> tuple[StratumWork]:
    stratum, derivations, seconds = done
    return (StratumWork(stratum.number, stratum.relations, How.BOOTSTRAP, "first epoch", derivations, seconds),)


def growing_rules(strata: Iterable[LogicalStratum], program: CheckedProgram) -> list[str]:
    """What is said of the rules of strata that may grow without end."""
    from elastalog.analysis.growth import growing

    notes: list[str] = []
    for stratum in strata:
        rules = {clause.rule.number: clause.rule for clause in stratum.clauses if clause.rule is not None}
        for rule, _, advice, _ in growing(program, tuple(rules.values())):
            notes.append(f"this rule may grow without end: {rule.text} ({rule.place}); {advice}")
    return notes


def with_growing_rules(error: LimitReached, strata: Iterable[LogicalStratum], program: CheckedProgram) -> LimitReached:
    """The limit that ended the evaluation of strata, with the rules of them that may grow without end."""
    notes = growing_rules(strata, program)
    if not notes or any(note in error.diagnostics[0].notes for note in notes):
        return error
    first, *others = error.diagnostics
    first = replace(first, notes=(*first.notes, *notes[:3]), help=f"bound the rule; otherwise {first.help}")
    return LimitReached([first, *others])
