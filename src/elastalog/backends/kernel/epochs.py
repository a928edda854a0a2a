"""Other states than that of the present epoch: shifts between two epochs, facts that strata are told of on trial, and
strata with subsumption evaluated once more, to see what has left them: proofs may rest on facts that are superseded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from weakref import proxy

import numpy as np

from elastalog.backends.kernel.backward import BackwardEvaluation
from elastalog.backends.kernel.bootstrap.chosen import Leaving, evaluate_chosen
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import Shift
from elastalog.backends.kernel.strata import Ranked
from elastalog.backends.protocol import ClauseDerivations
from elastalog.planning.logical import LogicalStratum

if TYPE_CHECKING:
    from elastalog.backends.kernel.relations import KernelFacts
    from elastalog.backends.kernel.updates import KernelUpdates


class _Backend(Protocol):
    @property
    def held(self) -> KernelFacts: ...

    @property
    def updates(self) -> KernelUpdates:
        """Made when they are first asked for."""


class KernelShifts:
    """See `backends.protocol.Shifts`."""

    def __init__(self, backend: _Backend) -> None:
        # Which has this: a circle would keep all facts until garbage is collected.
        self._backend: _Backend = proxy(backend)
        self._held = backend.held

    @cached_property
    def _updates(self) -> KernelUpdates:
        return self._backend.updates

    @property
    def is_under_way(self) -> bool:
        return self._updates.transaction.is_under_way

    def back(self, most: int | None = None, instead_of: Shift | None = None) -> Shift | None:
        """What `make` will need to go back, and forth again, once the update under way is committed."""
        done = self._updates.transaction
        if done.replaced:
            return None
        if instead_of is None or instead_of.is_long:
            instead_of = Shift(sys.maxsize if most is None else most)
        done.shift = instead_of
        return instead_of

    def can_make(self, shift: Shift) -> bool:
        """Whether a shift can still be made."""
        return shift.is_usable(self._held.relations)

    def make(self, shift: Shift) -> None:
        """Goes from the state before a committed update to the one after it, or back, outside an update."""
        shift.toggle()
        self._updates.evaluation.known_ranks.clear()

    def touched(self, shift: Shift) -> Mapping[str, Matrix] | None:
        """The facts that a shift concerns, if it can still be made."""
        return shift.touched(self._held.relations)

    def depart(self) -> None:
        """From now on, until `arrive`, rows keep their numbers, so that a shift stays possible."""
        self._updates.departures += 1

    def arrive(self) -> None:
        """See `depart`."""
        self._updates.departures -= 1

    def pretend(self, relation: str, absent: Matrix | None, present: Matrix | None) -> None:
        """Strata above a finished relation are told that some facts are absent and others present."""
        stored, changed = self._held.relations[relation], self._updates.transaction.changed
        self._updates.transaction.is_told = False
        if absent is not None and len(absent):
            transaction.take_away(stored, transaction.add_rows(stored, absent))
        if present is not None and len(present):
            transaction.put(stored, transaction.add_rows(stored, present), max(stored.lowest, 1))
        found = transaction.changed_entries(stored, self._held.annotation.is_global)
        if len(found):
            changed[relation] = found
        else:
            changed.pop(relation, None)


class KernelReplays:
    """See `backends.protocol.Replays`."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self._evaluation = evaluation

    def replay(self, stratum: LogicalStratum) -> KernelReplay | None:
        """Evaluates a stratum again, beside what is held of it, outside an update."""
        evaluation, held = self._evaluation, self._evaluation.held
        kind = evaluation.kinds[stratum.number]
        if isinstance(kind, Ranked) and kind.has_ranks():
            return None
        relations = {name: held.relations[name] for name in stratum.reads}
        for name in stratum.relations:
            old = held.relations[name]
            fresh = relations[name] = KernelRelation(name, old.width, is_annotated=True)
            if name not in evaluation.program.given:
                fresh.load(old.rows[: old.used][held.explicit_rows(old)])
        program = evaluation.program
        variants = StratumVariants(stratum, Binder(relations, evaluation.dictionary, program.checked.source))
        left = Leaving()
        evaluate_chosen(stratum, variants, program.relations, evaluation.watch, left)
        for name, facts in left.facts.items():
            # Back, at the levels that they had.
            words = np.array(list(facts), np.int32).reshape(len(facts), relations[name].width)
            levels = np.array([level for level, _ in facts.values()], np.int32)
            is_gone = relations[name].find(words) < 0
            relations[name].load(words[is_gone], levels[is_gone])
        backward = BackwardEvaluation(program, relations, evaluation.dictionary, evaluation.watch)
        return KernelReplay(relations, left, backward)


class KernelReplay:
    """See `backends.protocol.Replay`."""

    def __init__(self, relations: dict[str, KernelRelation], left: Leaving, backward: BackwardEvaluation) -> None:
        self._relations = relations
        self._left = left
        self._backward = backward

    def level(self, relation: str, row: tuple[int, ...]) -> int:
        stored = self._relations[relation]
        return int(stored.level[stored.find(np.array([row], np.int32))[0]])

    def superseded_by(self, relation: str, row: tuple[int, ...]) -> tuple[int, ...] | None:
        found = self._left.facts.get(relation, {}).get(row)
        return None if found is None else found[1]

    def derivations(self, relation: str, words: Matrix) -> list[ClauseDerivations]:
        return self._backward.derivations(relation, words)
