"""What the machine runs for a stratum: variants of clauses as code, relations and indexes as tables of addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import ref

import numpy as np

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.execution.bound_variant import BoundProbe, BoundVariant, Transform
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant
from elastalog.backends.kernel.execution.join_levels import LEVELS, MEMBER
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.store.annotations import DELTAS, LOSSES
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.postings import EVERY
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.planning.steps import Action, Copy, Fill, KeepConstant, KeepEqual
from elastalog.relations.words import Dictionary

_NEVER = 1 << 40
"""How far an index goes that this update does not need."""


Variant: TypeAlias = DeltaVariant | BoundVariant
_Known: TypeAlias = Callable[[], Vector | None]


@dataclass(frozen=True, slots=True)
class _Reach:
    """What an update of a stratum may look at: relations and indexes, with their places in the tables. `unneeded` are
    indexes of the stratum that it does not bring up to date."""

    relations: tuple[tuple[int, str], ...]
    indexes: tuple[tuple[int, tuple[str, tuple[int, ...]]], ...]
    unneeded: tuple[int, ...]


class MachinePlan:
    """The code of a stratum, and its tables, which are brought up to date before every update.

    `positive` and `negative` are the relations that some variant starts at, as facts and as absences; `reads_own`: some
    of them are of the stratum. `backward` and `recovering` are the heads that can be looked for backwards, if they were
    explicit, and if they lost their last derivation. `carried`: words that rows of bindings have behind their slots."""

    def __init__(
        self,
        own: Sequence[str],
        flat: frozenset[str],
        forward: Sequence[Variant],
        backward: Sequence[Variant],
        recovering: Sequence[Variant],
        dictionary: Dictionary,
        carried: int = LEVELS,
    ) -> None:
        self._dictionary = dictionary
        self._carried = carried
        self._code: list[int] = []
        self._indexed: dict[tuple[str, tuple[int, ...]], int] = {}
        self._recovering = frozenset(map(id, recovering))
        self.recovering = frozenset(variant.clause.head for variant in recovering)
        self.backward = frozenset(variant.clause.head for variant in backward)
        self.transforms: list[tuple[Transform, int]] = []
        variants = [*forward, *backward]
        self.positive = frozenset(_start(v) for v in variants if v.gather.goal is not None and not v.is_negated_start)
        self.negative = frozenset(_start(v) for v in variants if v.is_negated_start)
        self.reads_own = not self.positive.isdisjoint(own)
        read = (name for v in variants for name in (_start(v), *(probe.relation for probe in v.probes)))
        self.names = tuple(dict.fromkeys((*own, *read)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # The indexes of a relation of the stratum are neighbours.
        wanted = {(p.relation, p.key_columns) for v in variants for p in v.probes if _is_indexed(p)}
        for key in sorted(wanted, key=lambda key: (self.number[key[0]], key[1])):
            self._indexed[key] = len(self._indexed)
        self._keys = list(self._indexed)
        self._deferred = self._needed_by(backward) - self._needed_by(v for v in variants if self._is_usual(v))
        self.variants: Vector = np.array([self._encode(v) for v in variants], np.int64)
        self.code: Vector = np.array(self._code or [0], np.int64)
        self.relations: Vector = np.zeros((len(self.names), layout.RELATION_WIDTH), np.int64)
        self.indexes: Vector = np.zeros((max(len(self._indexed), 1), layout.INDEX_WIDTH), np.int64)
        self.widths = _widths(variants, carried)
        for number, name in enumerate(self.names):
            is_own = name in own
            places = [place for (relation, _), place in self._indexed.items() if relation == name and is_own]
            row = self.relations[number]
            row[layout.IS_FLAT] = name in flat
            row[layout.IS_OWN] = is_own
            row[layout.STARTS] = layout.FORWARDS * (name in self.positive) | layout.AGAINST * (name in self.negative)
            row[layout.FIRST_INDEX] = min(places, default=0)
            row[layout.INDEXES_END] = max(places, default=-1) + 1
        # Weak, so that arrays which have been replaced are not kept until the next update.
        self._seen: list[tuple[_Known, ...]] = [(_unknown,) * 5] * len(self.names)
        self._seen_indexes: list[tuple[_Known, ...]] = [(_unknown,) * 3] * len(self._indexed)
        self._used = [(-1, -1)] * len(self.names)
        self._done = [-1] * len(self._indexed)
        self._own = frozenset(own)
        self._all = variants
        self._everything = _Reach(tuple(enumerate(self.names)), tuple(enumerate(self._keys)), ())
        self._reaches: dict[frozenset[str], _Reach] = {}

    # --- code ------------------------------------------------------------------------------------------------------

    def _is_usual(self, variant: Variant) -> bool:
        """Whether every update may run a variant: those of explicit facts that rules derive too are rare."""
        return variant.gather.goal is not None or id(variant) in self._recovering

    def _needed_by(self, variants: Iterable[Variant]) -> set[int]:
        probes = (probe for variant in variants for probe in variant.probes)
        return {self._indexed[probe.relation, probe.key_columns] for probe in probes if _is_indexed(probe)}

    def _encode(self, variant: Variant) -> int:
        """Appends the code of a variant; returns its place."""
        at = len(self._code)
        gather = variant.gather
        is_backward = gather.goal is None
        lists = 0
        if is_backward:
            lists = 1 << DELTAS | (1 << LOSSES if id(variant) in self._recovering else 0)
        self._code.extend([0] * (layout.VARIANT_WIDTH + layout.PROBE_WIDTH * len(variant.probes)))
        take, take_place = variant.gather_take
        width = gather.width + self._carried
        head = {
            layout.START: self.number[_start(variant)],
            layout.IS_BACKWARD: is_backward,
            layout.IS_NEGATED_START: variant.is_negated_start,
            layout.HEAD: self.number[variant.clause.head],
            layout.PROBES: len(variant.probes),
            layout.START_TAKE: self._put(take, take_place),
            layout.START_TAKEN: len(take),
            layout.START_WIDTH: width,
            layout.START_ACTIONS: self._put_actions(
                gather.actions, variant.start_transform, gather.width + self._carried
            ),
            layout.START_ACTIONS_END: len(self._code),
            layout.LISTS: lists,
        }
        for field, value in head.items():
            self._code[at + field] = int(value)
        for number, (probe, unbound) in enumerate(zip(variant.probes, variant.planned.probes, strict=True)):
            first = at + layout.VARIANT_WIDTH + number * layout.PROBE_WIDTH
            for field, value in self._encode_probe(probe, unbound.actions).items():
                self._code[first + field] = int(value)
        return at

    def _encode_probe(self, probe: BoundProbe, actions: tuple[Action, ...]) -> dict[int, int]:
        is_indexed = _is_indexed(probe)
        return {
            layout.RELATION: self.number[probe.relation],
            layout.INDEX_OF: self._indexed[probe.relation, probe.key_columns] if is_indexed else 0,
            layout.HOW: layout.INDEXED if is_indexed else MEMBER if probe.is_member else EVERY,
            layout.IS_NEGATED: probe.is_negated,
            layout.IS_BEFORE: probe.is_before,
            layout.KEY: self._put(probe.key),
            layout.KEY_WIDTH: len(probe.key),
            layout.KEEP: self._put(probe.keep, probe.keep_place),
            layout.KEPT: len(probe.keep),
            layout.TAKE: self._put(probe.take, probe.take_place),
            layout.TAKEN: len(probe.take),
            layout.OUT_WIDTH: probe.width + self._carried,
            layout.ACTIONS_AT: self._put_actions(actions, probe.transform, probe.width + self._carried),
            layout.ACTIONS_END: len(self._code),
        }

    def _put(self, *vectors: Vector) -> int:
        at = len(self._code)
        for vector in vectors:
            self._code.extend(vector.tolist())
        return at

    def _put_actions(self, actions: tuple[Action, ...], transform: Transform | None, width: int) -> int:
        """Appends actions: one by one if the machine knows them all, else as one to be run in Python."""
        at = len(self._code)
        encoded = [self._encode_action(action) for action in actions]
        if None in encoded:
            assert transform is not None
            self._code.extend((layout.IN_PYTHON, len(self.transforms), 0))
            self.transforms.append((transform, width))
        else:
            for code in encoded:
                self._code.extend(code or ())
        return at

    def _encode_action(self, action: Action) -> tuple[int, int, int] | None:
        match action:
            case Fill(slot, constant):
                return layout.FILL, slot, self._dictionary.encode_value(constant.base, constant.value)
            case Copy(origin, slot):
                return layout.COPY, origin, slot
            case KeepEqual(left, right):
                return layout.KEEP_EQUAL, left, right
            case KeepConstant(slot, constant):
                return layout.KEEP_CONSTANT, slot, self._dictionary.encode_value(constant.base, constant.value)
            case _:
                return None

    # --- tables ----------------------------------------------------------------------------------------------------

    def refresh(self, relations: Mapping[str, KernelRelation], changed: Iterable[str] | None) -> None:
        """Writes where relations and indexes are now, of those that what `changed` can reach; None: of all, because
        explicit facts of the stratum go. Indexes are made when they are first needed."""
        reach = self._everything if changed is None else self._reach(frozenset(changed))
        for number, name in reach.relations:
            relation = relations[name]
            self.refresh_relation(number, relation)
            used = relation.used, relation.touched_used
            if used != self._used[number]:
                self.relations[number, layout.USED : layout.TOUCHED_USED + 1] = used
                self._used[number] = used
        for place, (name, columns) in reach.indexes:
            self.refresh_index(place, relations[name].index(columns))
        for place in reach.unneeded:
            if self._done[place] != _NEVER:
                self.indexes[place, layout.ADDED] = self._done[place] = _NEVER

    def _reach(self, changed: frozenset[str]) -> _Reach:
        """What variants may look at that start, at once or in the end, at changed relations, and those that look for
        what they lose; and the stratum itself."""
        found = self._reaches.get(changed)
        if found is None:
            starts, before = set(changed), -1
            usual = [variant for variant in self._all if self._is_usual(variant)]
            while len(starts) > before:
                before = len(starts)
                starts.update(v.clause.head for v in usual if v.gather.goal is not None and _start(v) in starts)
            reached = [variant for variant in usual if _start(variant) in starts]
            names = {*self._own, *starts, *(probe.relation for v in reached for probe in v.probes)}
            places = self._needed_by(reached)
            own = {place for place, (name, _) in enumerate(self._keys) if name in self._own}
            needed = sorted(places | (own - self._deferred))
            found = self._reaches[changed] = _Reach(
                tuple((number, name) for number, name in enumerate(self.names) if name in names),
                tuple((place, self._keys[place]) for place in needed),
                tuple(sorted(own & self._deferred)),
            )
        return found

    def refresh_relation(self, number: int, relation: KernelRelation) -> None:
        """Writes where a relation is, if it has moved."""
        rows, table, level, count, touched = self._seen[number]
        if (
            touched() is not relation.touched
            or rows() is not relation.rows
            or table() is not relation.table
            or level() is not relation.level
            or count() is not relation.count
        ):
            row = self.relations[number]
            row[layout.ROWS] = address_of(relation.rows)
            row[layout.WIDTH] = relation.width
            row[layout.TABLE_AT] = address_of(relation.table)
            row[layout.TABLE_SIZE] = len(relation.table)
            row[layout.SHIFT] = relation.shift
            row[layout.LEVEL] = address_of(relation.level)
            row[layout.COUNTS] = address_of(relation.count)
            row[layout.TOUCHED] = address_of(relation.touched)
            row[layout.TOUCHED_ROOM] = len(relation.touched)
            row[layout.ROOM] = relation.room
            row[layout.IS_ANNOTATED] = relation.is_annotated
            # Last, here and below: Ctrl-C may come in between, and then all of it is to be written again.
            arrays = (relation.rows, relation.table, relation.level, relation.count, relation.touched)
            self._seen[number] = tuple(map(ref, arrays))

    def refresh_index(self, place: int, index: Index) -> None:
        """Writes where an index is, if it has moved, and how far it goes."""
        keys, slots, pool = self._seen_indexes[place]
        row = self.indexes[place]
        if pool() is not index.pool or slots() is not index.slots or keys() is not index.keys:
            row[layout.COLUMNS] = address_of(index.columns)
            row[layout.COLUMNS_NUMBER] = len(index.columns)
            row[layout.KIND] = index.kind
            row[layout.KEYS] = address_of(index.keys)
            row[layout.KEYS_SIZE] = len(index.keys)
            row[layout.KEYS_SHIFT] = index.shift
            row[layout.SLOTS] = address_of(index.slots)
            row[layout.SLOTS_SIZE] = len(index.slots)
            row[layout.POOL] = address_of(index.pool)
            row[layout.POOL_SIZE] = len(index.pool)
            row[layout.STATE_AT] = address_of(index.state)
            row[layout.STATE_LENGTH] = len(index.state)
            self._seen_indexes[place] = tuple(map(ref, (index.keys, index.slots, index.pool)))
        if index.done != self._done[place]:
            row[layout.ADDED] = self._done[place] = index.done

    def extend_index(self, place: int, relations: Mapping[str, KernelRelation]) -> None:
        """Brings an index of the stratum up to date that had no room."""
        name, columns = self._keys[place]
        self.refresh_index(place, relations[name].index(columns))

    def _index_at(self, place: int, relations: Mapping[str, KernelRelation]) -> Index:
        name, columns = self._keys[place]
        return relations[name].indexes[columns]

    def losses(self, own: Iterable[str]) -> dict[str, int]:
        """How many facts of each relation of the stratum have lost their last derivation."""
        listed = self.relations[:, layout.LISTED].tolist()
        return {name: listed[self.number[name]] for name in own if listed[self.number[name]]}

    def keep(self, relations: Mapping[str, KernelRelation], own: Iterable[str]) -> None:
        """Tells the stratum's relations and their indexes how far they go now. What was not told because something
        interrupted it is told the next time."""
        for name in own:
            relation = relations[name]
            number = self.number[name]
            _, _, first, end, used, touched_used = self.relations[number, layout.IS_FLAT : layout.MAY_LOSE].tolist()
            if (used, touched_used) != self._used[number]:
                relation.used = used
                relation.touched_used = touched_used
                if touched_used:
                    relation.is_settled = False
                self._used[number] = used, touched_used
            for place in range(first, end):
                added = int(self.indexes[place, layout.ADDED])
                if added != self._done[place]:
                    self._index_at(place, relations).done = added
                    self._done[place] = added


def _unknown() -> None:
    """Where no array has been seen yet."""


def _start(variant: Variant) -> str:
    assert variant.gather.relation is not None
    return variant.gather.relation


def _is_indexed(probe: BoundProbe) -> bool:
    return not probe.is_member and bool(probe.key_columns)


def _widths(variants: Iterable[Variant], carried: int) -> tuple[int, ...]:
    """The widest block of each step."""
    widest: list[int] = []
    for variant in variants:
        for depth, width in enumerate((max(variant.gather.width, 1), *(probe.width for probe in variant.probes))):
            if depth == len(widest):
                widest.append(0)
            widest[depth] = max(widest[depth], width + carried)
    return tuple(widest)
