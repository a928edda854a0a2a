"""A variant of a clause in incremental evaluation: starts at touched facts, sees each relation through the views of a
phase, and carries levels (see `level_views`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elastalog.backends.kernel.execution import level_views
from elastalog.backends.kernel.execution.bound_variant import BLOCK, Scratch, Sink, StepsOfVariant, TooManyRows
from elastalog.backends.kernel.execution.join_levels import MEMBER, join_levels
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.store.annotations import DELTA, IS, LOST, MARKS, WAS, view
from elastalog.backends.kernel.store.memory import NO_KEYS, NO_MATRIX, NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.postings import EVERY
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import Clause
from elastalog.planning.steps import Variant
from elastalog.relations.words import Dictionary


@dataclass(frozen=True, slots=True)
class Phase:
    """What atoms see: facts (`sees`) and absences (`lacks`), and the same without the delta, for goals before the
    start. The relations in `own` may be seen differently."""

    is_loss: bool
    sees: int
    sees_before: int
    lacks: int
    lacks_before: int
    own: frozenset[str] = frozenset()
    own_sees: int = 0
    own_sees_before: int = 0

    def view_of(self, relation: str, is_negated: bool, is_before: bool) -> int:
        """What a goal sees of its relation."""
        if is_negated:
            return self.lacks_before if is_before else self.lacks
        if relation in self.own:
            return self.own_sees_before if is_before else self.own_sees
        return self.sees_before if is_before else self.sees


LOSSES = Phase(True, view(WAS, LOST), view(WAS, LOST | DELTA), view(0, WAS | LOST), view(0, WAS | LOST | DELTA))
"""The previous epoch, without what has already been lost."""

GAINS = Phase(False, view(IS, 0), view(IS, DELTA), view(0, IS), view(0, IS | DELTA))
"""The present state."""

BOTH_EPOCHS = Phase(False, view(WAS | IS, 0), view(WAS | IS, DELTA), view(0, WAS | IS), view(0, WAS | IS | DELTA))
"""What is there in both epochs."""

BEFORE = Phase(False, view(WAS, 0), view(WAS, 0), view(0, WAS), view(0, WAS))
NOW = Phase(False, view(IS, 0), view(IS, 0), view(0, IS), view(0, IS))
"""What was there, and what is there now, for those to whom it does no harm that a derivation may be found twice."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What variants run in: all relations, those whose facts count as level 0 (`flat`; with local levels all of lower
    strata), and blocks."""

    relations: Mapping[str, KernelRelation]
    flat: frozenset[str]
    scratch: Scratch


class DeltaVariant(StepsOfVariant):
    """One variant of a clause in incremental evaluation."""

    def __init__(
        self, planned: Variant, dictionary: Dictionary, source: Source, clauses: Sequence[Clause] = ()
    ) -> None:
        super().__init__(planned, frozenset(), dictionary, source, clauses)
        self._scratch: Scratch | None = None
        self._steps: list[tuple[Matrix, Vector]] = []
        self._there: list[int] = []

    def _begin(self, setting: Setting) -> tuple[Matrix, Vector]:
        """The block and the state vector of the first step; those of all are looked up once a scratch. What is there
        now is what indexes must hold in this run: what it adds itself is not looked for, and while an index is probed
        no row may be added to it."""
        self._there = [setting.relations[probe.relation].used for probe in self.probes]
        scratch = setting.scratch
        if self._scratch is not scratch:
            widths = (self.gather.width, *(probe.width for probe in self.probes))
            self._steps = [(scratch.block(d, w + LEVELS), scratch.state(d)) for d, w in enumerate(widths)]
            self._scratch = scratch  # last: Ctrl-C may come before
        return self._steps[0]

    def concerned(self, relation: KernelRelation, changed: Vector, phase: Phase) -> Vector:
        """Of the changed entries of the relation that it starts at those through which a derivation fired BEFORE and
        does not any more, or fires NOW and did not."""
        marks = relation.touched[changed, MARKS] & (WAS | IS)
        found: Vector = changed[marks == (WAS if (phase is BEFORE) != self.is_negated_start else IS)]
        return found

    def run(self, setting: Setting, entries: Vector, phase: Phase, sink: Sink) -> None:
        """Enumerates the derivations in which the start goal is one of the touched entries."""
        gather = self.gather
        assert gather.relation is not None
        relation = setting.relations[gather.relation]
        take, place = self.gather_take
        block, state = self._begin(setting)
        seen = phase.view_of(gather.relation, self.is_negated_start, is_before=False)
        is_flat = gather.relation in setting.flat
        for start in range(0, len(entries), BLOCK):
            stop = min(start + BLOCK, len(entries))
            if gather.goal is None:
                level_views.gather_heads(entries, start, stop, relation.rows, relation.touched, take, place, block)
                used = stop - start
            else:
                state[FILLED] = 0
                level_views.gather_entries(
                    entries, start, stop, relation.rows, relation.touched, seen, phase.is_loss, is_flat,
                    self.is_negated_start, take, place, block, state,
                )  # fmt: skip
                used = int(state[FILLED])
            self._pass_on(setting, block, used, phase, sink)

    def run_range(self, setting: Setting, start: int, stop: int, sink: Sink) -> None:
        """Enumerates, with their levels, the derivations of the present state whose start is a row in [start, stop) of
        the start's relation."""
        gather = self.gather
        block, state = self._begin(setting)
        if gather.relation is None:
            block[0, -LEVELS:] = 0
            self._pass_on(setting, block, 1, GAINS, sink)
            return
        relation = setting.relations[gather.relation]
        take, place = self.gather_take
        is_flat = gather.relation in setting.flat
        while start < stop:
            level_views.gather_levels(
                relation.rows, start, stop, relation.level, relation.touched, is_flat, take, place, block, state
            )
            start = int(state[NEXT])
            self._pass_on(setting, block, int(state[FILLED]), GAINS, sink)

    def _pass_on(self, setting: Setting, block: Matrix, used: int, phase: Phase, sink: Sink) -> None:
        if used and self.start_transform is not None:
            block, used = self.start_transform(block, used)
        if not used:
            return
        if self.probes:
            self._probe(setting, 0, block, used, phase, sink)
        else:
            setting.scratch.derivations += used
            sink(block, used)

    def _probe(self, setting: Setting, depth: int, left: Matrix, stop: int, phase: Phase, sink: Sink) -> None:
        probe, scratch = self.probes[depth], setting.scratch
        relation = setting.relations[probe.relation]
        out, state = self._steps[depth + 1]
        state[WITHIN] = 0
        seen = phase.view_of(probe.relation, probe.is_negated, probe.is_before)
        slots, pool = NO_MATRIX, NO_WORDS
        if probe.is_member:
            kind, keys, shift = MEMBER, relation.paired_slots, relation.shift
        elif probe.key_columns:
            kind, keys, shift, slots, pool = relation.index(probe.key_columns, self._there[depth]).arrays
        else:
            kind, keys, shift = EVERY, NO_KEYS, 0
        is_flat = probe.relation in setting.flat
        limit = relation.used
        is_last = depth + 1 == len(self.probes)
        start = 0
        while True:
            scratch.look()
            state[FILLED] = 0
            join_levels(
                left, start, stop, probe.key, kind, keys, shift, slots, pool, relation.rows, probe.index_columns,
                limit, relation.level, relation.touched, seen, phase.is_loss, is_flat, probe.is_negated,
                probe.keep, probe.keep_place, probe.take, probe.take_place, out, state,
            )  # fmt: skip
            used = int(state[FILLED])
            scratch.rows_left -= used + int(state[NEXT]) - start
            if scratch.rows_left < 0:
                raise TooManyRows
            start = int(state[NEXT])
            if used:
                result = out
                if probe.transform is not None:
                    result, used = probe.transform(out, used)
                if used:
                    if is_last:
                        scratch.derivations += used
                        sink(result, used)
                    else:
                        self._probe(setting, depth + 1, result, used, phase, sink)
            if start >= stop:
                return
