"""A variant of a clause, bound to relations and ready to run: blocks of bindings go from step to step, depth first.

Only one block a step is ever held, so memory does not depend on how many derivations there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Final, Protocol

import numpy as np

from elastalog.backends.kernel.execution import join as join_operators
from elastalog.backends.kernel.expressions.actions import compile_actions
from elastalog.backends.kernel.store import set_table as row_operators
from elastalog.backends.kernel.store.memory import NO_KEYS, NO_MATRIX, NO_WORDS, Matrix, Vector, state_vector
from elastalog.backends.kernel.store.postings import EVERY
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import Absent, Clause
from elastalog.planning.steps import Action, Probe, Variant
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

BLOCK = 1 << 14
"""Rows of a block: large enough to hide the cost of a call, small enough for the cache."""

Transform = Callable[[Matrix, int], tuple[Matrix, int]]


class Sink(Protocol):
    """Takes the results of a variant; block[:used] is only valid during the call."""

    def __call__(self, block: Matrix, used: int) -> None: ...


@cache
def numbers(listed: tuple[int, ...]) -> Vector:
    """A few columns or slots, as the operators want them. They are not written into: most variants have the same."""
    return np.array(listed, np.int64)


@cache
def columns(pairs: tuple[tuple[int, int], ...]) -> tuple[Vector, Vector]:
    """Sources and destinations of copied columns."""
    return numbers(tuple([a for a, _ in pairs])), numbers(tuple([b for _, b in pairs]))


@dataclass(slots=True)
class BoundProbe:
    """A probe with its arrays prepared."""

    relation: str
    is_negated: bool
    is_before: bool
    is_member: bool
    is_own: bool
    key_columns: tuple[int, ...]
    index_columns: Vector
    key: Vector
    keep: Vector
    keep_place: Vector
    take: Vector
    take_place: Vector
    row_place: int
    width: int
    transform: Transform | None


class TooManyRows(Exception):
    """A variant of a clause has gone through more rows than it was allowed."""


_NO_LIMIT: Final = 1 << 62

_SPARE: Final[dict[int, list[Matrix]]] = {}
_MOST_SPARE: Final = 8
"""Blocks that nobody uses, by their width, and how many are kept of each."""


class Scratch:
    """Blocks and state vectors of one thread, by depth and width. `rows`: how many rows batch variants have looked up
    or made. `rows_left`: how many rows incremental variants may still go through before they raise TooManyRows. `look`:
    called for every block, also of rows that come to nothing; it raises when a limit of `watch` is reached."""

    __slots__ = ("_blocks", "_states", "derivations", "look", "rows", "rows_left")

    def __init__(self, watch: Watch | None = None) -> None:
        self.look: Callable[[], None] = (lambda: None) if watch is None else watch.step
        self._blocks: dict[tuple[int, int], Matrix] = {}
        self._states: dict[int, Vector] = {}
        self.derivations = 0
        self.rows = 0
        self.rows_left = _NO_LIMIT

    def run_within(self, rows: int, work: Callable[[], None]) -> int | None:
        """Does some work if it goes through no more than some `rows`: returns through how many, None if it was broken
        off."""
        self.rows_left = rows
        try:
            work()
        except TooManyRows:
            return None
        else:
            return rows - self.rows_left
        finally:
            self.rows_left = _NO_LIMIT

    def block(self, depth: int, width: int) -> Matrix:
        key = (depth, width)
        block = self._blocks.get(key)
        if block is None:
            try:
                block = _SPARE[width].pop()
            except (KeyError, IndexError):
                block = np.empty((BLOCK, width), np.int32)
            self._blocks[key] = block
        return block

    def give_back(self) -> None:
        """Leaves the blocks to others: a session that has been opened may never need them again."""
        while self._blocks:
            (_, width), block = self._blocks.popitem()
            spare = _SPARE.setdefault(width, [])
            if len(spare) < _MOST_SPARE:
                spare.append(block)

    def state(self, depth: int) -> Vector:
        state = self._states.get(depth)
        if state is None:
            state = self._states[depth] = state_vector()
        return state


@dataclass(frozen=True, slots=True)
class Bounds:
    """The delta of an iteration: rows [start, stop) of each relation of the stratum."""

    start: Mapping[str, int]
    stop: Mapping[str, int]

    def limit(self, relation: str, is_before: bool, used: int) -> int:
        """The rows that a goal may read: up to the delta, before it, or all `used` rows of a lower relation."""
        return (self.start if is_before else self.stop).get(relation, used)


class StepsOfVariant:
    """A variant of a clause, the arrays of whose start and probes are prepared when they are needed: not where the
    machine has its code already. `own`: relations whose rows are bounded by an iteration. `clauses`: what it is run
    for, if they are several, which differ in their heads only; its results are then the terms of all heads."""

    def __init__(
        self,
        planned: Variant,
        own: frozenset[str],
        dictionary: Dictionary,
        source: Source,
        clauses: Sequence[Clause] = (),
    ) -> None:
        self.planned = planned
        self.clause = planned.clause
        self.clauses = tuple(clauses)
        self.gather = planned.gather
        self.own = own
        self._dictionary = dictionary
        self._source = source
        goal = planned.gather.goal
        self.is_negated_start = goal is not None and isinstance(planned.clause.goals[goal], Absent)

    @cached_property
    def gather_take(self) -> tuple[Vector, Vector]:
        """Columns of the start's relation, and their slots."""
        return columns(self.gather.take)

    @cached_property
    def start_transform(self) -> Transform | None:
        """The actions of the start."""
        return bind_actions(self.gather.actions, self.gather.slots, self._dictionary, self._source)

    @cached_property
    def probes(self) -> list[BoundProbe]:
        return [bind_probe(probe, self.own, self._dictionary, self._source) for probe in self.planned.probes]

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes this variant needs."""
        for probe in self.probes:
            if not probe.is_member and probe.key_columns:
                relations[probe.relation].index(probe.key_columns)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """What derivations are enumerated in: all relations, the delta of the iteration, and blocks; where they go to."""

    relations: Mapping[str, KernelRelation]
    bounds: Bounds
    scratch: Scratch
    sink: Sink


class BoundVariant(StepsOfVariant):
    """One variant of a clause in batch evaluation. `own` are the relations of the clause's stratum, bounded by row
    numbers. `derivations`, `rows` that were looked at or made, `start_rows` and `seconds` say what it has done, and how
    long that took."""

    def __init__(self, planned: Variant, own: frozenset[str], dictionary: Dictionary, source: Source) -> None:
        super().__init__(planned, own, dictionary, source)
        self.derivations = 0
        self.rows = 0
        self.start_rows = 0
        self.seconds = 0.0

    def run(self, into: Enumeration, start: int, stop: int) -> None:
        """Enumerates the derivations whose start is a row in [start, stop) of the start's relation."""
        gather, scratch = self.gather, into.scratch
        block = scratch.block(0, max(gather.width, 1))
        if gather.relation is None:
            self.run_block(into, block, 1)
            return
        relation = into.relations[gather.relation]
        # Rows that are referred to cannot become more where they are: not so a large relation that may grow.
        is_growing = gather.relation in self.own and relation.used >= SETTINGS.many_rows
        if gather.is_direct and relation.is_settled and not is_growing:
            self._probe(into, 0, relation.rows, start, stop)
            return
        take, place = self.gather_take
        state = scratch.state(0)
        is_checked = not relation.is_settled
        while start < stop:
            state[FILLED] = 0
            row_operators.gather(
                relation.rows, start, stop, is_checked, relation.level, relation.touched, take, place, block, state
            )
            start = int(state[NEXT])
            self.run_block(into, block, int(state[FILLED]))

    def run_block(self, into: Enumeration, block: Matrix, used: int) -> None:
        """Enumerates the derivations that start from given rows, laid out as the start lays them out."""
        self._pass_on(into, 0, block, used, self.start_transform)

    def _pass_on(self, into: Enumeration, depth: int, block: Matrix, used: int, transform: Transform | None) -> None:
        """Runs the actions of the step that made a block, then the next step or the sink."""
        if used and transform is not None:
            block, used = transform(block, used)
        if not used:
            return
        if depth < len(self.probes):
            self._probe(into, depth, block, 0, used)
        else:
            into.scratch.derivations += used
            into.sink(block, used)

    def _probe(self, into: Enumeration, depth: int, left: Matrix, start: int, stop: int) -> None:
        probe, scratch = self.probes[depth], into.scratch
        relation = into.relations[probe.relation]
        limit = into.bounds.limit(probe.relation, probe.is_before, relation.used) if probe.is_own else relation.used
        if limit == 0 and not probe.is_negated:
            scratch.rows += stop - start  # as the machine counts them
            return
        out = scratch.block(depth + 1, probe.width)
        state = scratch.state(depth + 1)
        state[WITHIN] = 0
        if not probe.is_member and probe.key_columns:
            kind, keys, shift, slots, pool = relation.index(probe.key_columns, limit).arrays
        else:
            kind, keys, shift, slots, pool = EVERY, NO_KEYS, 0, NO_MATRIX, NO_WORDS
        is_checked = not relation.is_settled
        while True:
            scratch.look()
            state[FILLED] = 0
            if probe.is_member:
                row_operators.member(
                    left, start, stop, probe.key, relation.table, relation.shift, relation.rows, limit, is_checked,
                    relation.level, relation.touched, probe.is_negated, probe.keep, probe.keep_place, probe.row_place,
                    out, state,
                )  # fmt: skip
            else:
                join_operators.join(
                    left, start, stop, probe.key, kind, keys, shift, slots, pool, relation.rows, probe.index_columns,
                    limit, is_checked, relation.level, relation.touched, probe.keep, probe.keep_place, probe.take,
                    probe.take_place, out, state,
                )  # fmt: skip
            used = int(state[FILLED])
            scratch.rows += used + int(state[NEXT]) - start
            start = int(state[NEXT])
            self._pass_on(into, depth + 1, out, used, probe.transform)
            if start >= stop:
                return


def bind_actions(
    actions: tuple[Action, ...], slots: Mapping[str, int], dictionary: Dictionary, source: Source
) -> Transform | None:
    """The actions of a step as one function, None if there are none."""
    return compile_actions(actions, slots, dictionary, source) if actions else None


def bind_probe(probe: Probe, own: frozenset[str], dictionary: Dictionary, source: Source) -> BoundProbe:
    """The arrays of a probe."""
    keep, keep_place = columns(probe.keep)
    take, take_place = columns(probe.take)
    return BoundProbe(
        relation=probe.relation,
        is_negated=probe.is_negated,
        is_before=probe.is_before,
        is_member=probe.is_member,
        is_own=probe.relation in own,
        key_columns=probe.key_columns,
        index_columns=numbers(probe.key_columns),
        key=numbers(probe.key_slots),
        keep=keep,
        keep_place=keep_place,
        take=take,
        take_place=take_place,
        # A probe with every column bound can take nothing but the row number.
        row_place=int(take_place[0]) if probe.is_member and len(take_place) else -1,
        width=max(probe.width, 1),
        transform=bind_actions(probe.actions, probe.slots, dictionary, source),
    )
