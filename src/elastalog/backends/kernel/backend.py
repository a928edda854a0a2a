"""The in-process backend: relations in memory, rules evaluated by compiled operators. What it does is done by others:
`relations` hold facts, `evaluation` brings strata to their fixpoints, `updates` goes from epoch to epoch and
says what that changed, and `epochs` goes back and forth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from elastalog.backends.annotation import Annotation
from elastalog.backends.kernel.bootstrap.handover import OtherPlace
from elastalog.backends.kernel.epochs import KernelReplays, KernelShifts
from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.relations import KernelFacts
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.snapshot import Fetched
from elastalog.backends.protocol import Capabilities, ClauseDerivations, Procedure, Profile, StateChanges
from elastalog.backends.watch import Watch
from elastalog.diagnostics.quota import lifted
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from elastalog.backends.kernel.updates import KernelChanges, KernelStates, KernelUpdates

T = TypeVar("T")


class KernelBackend:
    """See `backends.protocol.Backend`.

    Another backend may hold a kernel. It may evaluate a stratum itself and hand over the facts with their levels and
    counts, by `states.restore`; `evict` relations that it keeps elsewhere (then among those `evicted`), if it says how
    to `fetch` one; tell the kernel what it has found to change in one (`receive`); and ask how the update under way
    stands (`updates.transaction`, `states.before`, `states.changed_in`)."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        annotation: Annotation,
        jobs: int = 1,
        watch: Watch | None = None,
        fetch: Callable[[str], Fetched] | None = None,
        place: OtherPlace | None = None,
    ) -> None:
        self.watch = watch or Watch()
        self._fetch = fetch
        self.program = program
        crew = ALONE if jobs == 1 else Crew(jobs)
        self.held = held = KernelFacts(program, annotation, None if fetch is None else self._fetched, crew)
        # As they are there: every decision asks.
        self.contains, self.size, self.facts, self.select = held.contains, held.size, held.facts, held.select
        self.evicted, self.evict = held.evicted, held.evict
        self.evaluation = KernelEvaluation(held, program, dictionary, crew, self.watch, place)
        self.bootstrap = self.evaluation.bootstrap
        self.capabilities = Capabilities(
            shifts=KernelShifts(self) if annotation.has_levels_only else None,
            equivalences=held,
            replays=KernelReplays(self.evaluation),
        )

    # What goes from one epoch to the next is a third of the kernel, and many a program has only one.

    @cached_property
    def updates(self) -> KernelUpdates:
        from elastalog.backends.kernel.updates import KernelUpdates

        return KernelUpdates(self.evaluation)

    @cached_property
    def changes(self) -> KernelChanges:
        from elastalog.backends.kernel.updates import KernelChanges

        return KernelChanges(self.updates)

    @cached_property
    def states(self) -> KernelStates:
        from elastalog.backends.kernel.updates import KernelStates

        return KernelStates(self.updates)

    @property
    def is_complete(self) -> bool:
        return self.evaluation.is_complete

    # --- facts -----------------------------------------------------------------------------------------------------

    def load(self, facts: dict[str, Matrix]) -> None:
        given = self.program.given
        while moved := given.keys() & facts.keys():
            name = moved.pop()
            facts[given[name]] = facts.pop(name)
        self.evaluation.load(facts)

    def stored(self, relation: str) -> int:
        return self.held.relations[relation].present

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        facts = np.ascontiguousarray(words, np.int32)
        return self.held.is_explicit(self.program.given.get(relation, relation), facts)

    def profile(self) -> Profile:
        evaluation, held, place = self.evaluation, self.held, self.evaluation.place
        sizes = {name: 0 if name in held.evicted else stored.nbytes for name, stored in held.relations.items()}
        elsewhere = () if place is None else tuple(place.costs.values())
        return Profile(tuple(evaluation.costs()), sizes, elsewhere, tuple(evaluation.places()))

    def derivations(
        self, relation: str, words: Matrix, is_sought: Callable[[Clause], bool] | None = None
    ) -> list[ClauseDerivations]:
        return self.evaluation.backward.derivations(relation, words, is_sought)

    # --- evaluation ------------------------------------------------------------------------------------------------

    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None:
        self.held.follow(program, renamed, guards or {})
        self.evaluation.follow(program)
        self.program = program
        self.updates.follow(program)

    def prepare(self, stratum: LogicalStratum) -> None:
        self.updates.maintenance.prepare(stratum)

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T], *, is_portable: bool) -> list[T]:
        return [self.updates.maintenance.maintain(stratum, procedure)]

    def refold(self, stratum: LogicalStratum) -> None:
        self.updates.refold(stratum)

    def rebuild(self, stratum: LogicalStratum) -> int:
        return self.updates.rebuild(stratum)

    # --- transaction -----------------------------------------------------------------------------------------------

    # As they are there, without a call in between: every update begins and is committed.

    @cached_property
    def begin(self) -> Callable[..., None]:
        return self.updates.begin

    @cached_property
    def commit(self) -> Callable[[], None]:
        return self.updates.commit

    def rollback(self) -> None:
        with lifted():  # half a rollback would be no epoch at all
            self.updates.rollback()

    # --- for a backend that holds this one -------------------------------------------------------------------------

    def fetch(self, stratum: LogicalStratum) -> None:
        """The relations that concern a stratum are here, from now on."""
        for name in (*stratum.relations, *stratum.reads):
            _ = self.held.relations[name]

    def _fetched(self, name: str) -> KernelRelation:
        assert self._fetch is not None
        found, held = self._fetch(name), self.held
        width = self.program.relations[name].width
        relation, held.explicit[name] = snapshot.restored(
            name, width, held.annotation.is_kept, found.facts, found.changes
        )
        if found.pending is not None:
            self.updates.receive(relation, found.pending)
        return relation

    def receive(self, relation: str, changes: StateChanges) -> None:
        """Makes changes of a relation that were found elsewhere a part of the update under way."""
        self.updates.receive(self.held.relations[relation], changes)
