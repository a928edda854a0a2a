"""What the machine runs for a stratum: variants of clauses as code, relations and indexes as tables of addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_int64

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.compile.records import Table
from elastalog.backends.kernel.execution.join_levels import LEVELS
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.code import Code, IndexKey, Variant, is_indexed, start_of
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.late import dataclass
from elastalog.relations.words import Dictionary

_NEVER = 1 << 40
"""How far an index goes that this update does not need."""


@dataclass(frozen=True, slots=True)
class _Reach:
    """What an update of a stratum may look at: relations and indexes, with their places in the tables. `unneeded` are
    indexes of the stratum that it does not bring up to date."""

    relations: tuple[tuple[int, str], ...]
    indexes: tuple[tuple[int, IndexKey], ...]
    unneeded: tuple[int, ...]


class MachinePlan:
    """The code of a stratum, and its tables, which are brought up to date before every update.

    `positive` and `negative` are the relations that some variant starts at, as facts and as absences; `reads_own`: some
    of them are of the stratum. `backward` and `recovering` are the heads that can be looked for backwards, if they were
    explicit, and if they lost their last derivation. `places`: where the tables lie, in the order of the fields of
    `Machine` from `relations` on. `carried`: words that rows of bindings have behind their slots."""

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
        self._indexed: dict[IndexKey, int] = {}
        self._recovering = frozenset(recovering)
        self.recovering = frozenset(variant.clause.head for variant in recovering)
        self.backward = frozenset(variant.clause.head for variant in backward)
        variants = [*forward, *backward]
        self.positive = frozenset(start_of(v) for v in variants if v.gather.goal is not None and not v.is_negated_start)
        self.negative = frozenset(start_of(v) for v in variants if v.is_negated_start)
        self.reads_own = not self.positive.isdisjoint(own)
        read = (name for v in variants for name in (start_of(v), *(probe.relation for probe in v.probes)))
        self.names = tuple(dict.fromkeys((*own, *read)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # The indexes of a relation of the stratum are neighbours.
        wanted = {(p.relation, p.key_columns) for v in variants for p in v.probes if is_indexed(p)}
        for key in sorted(wanted, key=lambda key: (self.number[key[0]], key[1])):
            self._indexed[key] = len(self._indexed)
        self._keys = list(self._indexed)
        self._deferred = self._needed_by(backward) - self._needed_by(v for v in variants if self._is_usual(v))
        self.code = Code(variants, self.number, self._indexed, self._recovering, dictionary, carried)
        self.relations = Table(layout.Relation, len(self.names))
        self.indexes = Table(layout.IndexPlace, len(self._indexed))
        self._own = frozenset(own)
        self._indexes_of = {name: [place for place, key in enumerate(self._keys) if key[0] == name] for name in own}
        for name, row in zip(self.names, self.relations, strict=True):
            places = self._indexes_of.get(name, ())
            row.is_flat = name in flat
            row.is_own = name in self._own
            row.starts = (
                layout.FORWARDS * (name in self.positive)
                | layout.AGAINST * (name in self.negative)
                | layout.SOUGHT * (name in self.recovering)
            )
            row.first_index = min(places, default=0)
            row.indexes_end = max(places, default=-1) + 1
        tables = self.relations.address, len(self.names), self.indexes.address, *self.code.places
        self.places = (c_int64 * len(tables))(*tables)
        self._seen = [-1] * len(self.names)
        self._seen_indexes = [-1] * len(self._indexed)
        self._used = [-1] * len(self.names)
        self._touched_used = [-1] * len(self.names)
        self._done = [0] * len(self._indexed)
        self._all = variants
        self._everything = _Reach(tuple(enumerate(self.names)), tuple(enumerate(self._keys)), ())
        self._reaches: dict[tuple[frozenset[str], bool], _Reach] = {}

    def _is_usual(self, variant: Variant) -> bool:
        """Whether every update may run a variant: those of explicit facts that rules derive too are rare."""
        return variant.gather.goal is not None or variant in self._recovering

    def _needed_by(self, variants: Iterable[Variant]) -> set[int]:
        probes = (probe for variant in variants for probe in variant.probes)
        return {self._indexed[probe.relation, probe.key_columns] for probe in probes if is_indexed(probe)}

    # --- tables ----------------------------------------------------------------------------------------------------

    def refresh(
        self, relations: Mapping[str, KernelRelation], changed: Iterable[str] | None, *, is_first_round: bool = False
    ) -> None:
        """Writes where relations and indexes are now, of those that what `changed` can reach, in the end or in the
        first round; None: of all, because explicit facts of the stratum go. Indexes are made when they are first
        needed."""
        reach = self._everything if changed is None else self._reach(frozenset(changed), is_first_round)
        # Whoever looks at these lines: they run for every relation that a stratum reads, in every update.
        seen, used, touched_used = self._seen, self._used, self._touched_used
        for number, name in reach.relations:
            relation = relations[name]
            if relation.stamp != seen[number]:
                self.refresh_relation(number, relation)
            if relation.used != used[number]:
                self.relations[number].used = relation.used
                used[number] = relation.used
            if relation.touched_used != touched_used[number]:
                self.relations[number].touched_used = relation.touched_used
                touched_used[number] = relation.touched_used
        stamps, done = self._seen_indexes, self._done
        for place, (name, columns) in reach.indexes:
            relation = relations[name]
            index = relation.indexes.get(columns)
            if index is None or index.done < relation.used:
                index = relation.index(columns)
            if index.stamp != stamps[place] or index.done != done[place]:
                self.refresh_index(place, index)
        for place in reach.unneeded:
            if self._done[place] != _NEVER:
                self.indexes[place].added = self._done[place] = _NEVER

    def _reach(self, changed: frozenset[str], is_first_round: bool) -> _Reach:
        """What variants may look at that start, at once or in the end, at changed relations, and those that look for
        what they lose; and the stratum itself, whose indexes the first round does not need."""
        found = self._reaches.get((changed, is_first_round))
        if found is None:
            starts, before = set(changed), -1
            usual = [variant for variant in self._all if self._is_usual(variant)]
            while len(starts) > before and not is_first_round:
                before = len(starts)
                starts.update(v.clause.head for v in usual if v.gather.goal is not None and start_of(v) in starts)
            reached = [variant for variant in usual if start_of(variant) in starts]
            names = {*self._own, *starts, *(probe.relation for v in reached for probe in v.probes)}
            places = self._needed_by(reached)
            own = {place for place, (name, _) in enumerate(self._keys) if name in self._own and not is_first_round}
            needed = sorted(places | (own - self._deferred))
            found = self._reaches[changed, is_first_round] = _Reach(
                tuple((number, name) for number, name in enumerate(self.names) if name in names),
                tuple((place, self._keys[place]) for place in needed),
                tuple(sorted(own & self._deferred)),
            )
        return found

    def refresh_relation(self, number: int, relation: KernelRelation) -> None:
        """Writes where a relation is."""
        stamp, row = relation.stamp, self.relations[number]
        row.rows, row.width, row.room = address_of(relation.rows), relation.width, relation.room
        row.table, row.table_size = address_of(relation.table), len(relation.table)
        row.shift = relation.shift
        row.level, row.count = address_of(relation.level), address_of(relation.count)
        row.touched, row.touched_room = address_of(relation.touched), len(relation.touched)
        row.is_annotated = relation.is_annotated
        # Last, here and below: Ctrl-C may come in between, and then all of it is to be written again.
        self._seen[number] = stamp

    def refresh_index(self, place: int, index: Index) -> None:
        """Writes where an index is, if it has moved, and how far it goes."""
        stamp, row = index.stamp, self.indexes[place]
        if stamp != self._seen_indexes[place]:
            row.columns, row.columns_number = address_of(index.columns), len(index.columns)
            row.kind = index.kind
            row.keys, row.keys_size, row.shift = address_of(index.keys), len(index.keys), index.shift
            row.slots, row.slots_size = address_of(index.slots), len(index.slots)
            row.pool, row.pool_size = address_of(index.pool), len(index.pool)
            row.state, row.state_size = address_of(index.state), len(index.state)
            self._seen_indexes[place] = stamp
        if index.done != self._done[place]:
            row.added = self._done[place] = index.done

    def extend_index(self, place: int, relations: Mapping[str, KernelRelation]) -> None:
        """Brings an index of the stratum up to date that had no room."""
        name, columns = self._keys[place]
        self.refresh_index(place, relations[name].index(columns))

    def _index_at(self, place: int, relations: Mapping[str, KernelRelation]) -> Index:
        name, columns = self._keys[place]
        return relations[name].indexes[columns]

    def losses(self, own: Iterable[str]) -> dict[str, int]:
        """How many facts of each relation of the stratum have lost their last derivation."""
        losses = {name: self.relations[self.number[name]].losses for name in own}
        return {name: number for name, number in losses.items() if number}

    def keep(self, relations: Mapping[str, KernelRelation], own: Iterable[str]) -> None:
        """Tells the stratum's relations and their indexes how far they go now. What was not told because something
        interrupted it is told the next time."""
        for name in own:
            number = self.number[name]
            row = self.relations[number]
            if row.used != self._used[number]:
                relations[name].used = row.used
                self._used[number] = row.used
            if row.touched_used != self._touched_used[number]:
                relation = relations[name]
                relation.touched_used = row.touched_used
                if relation.touched_used:
                    relation.is_settled = False
                self._touched_used[number] = row.touched_used
            for place in self._indexes_of[name]:
                added = self.indexes[place].added
                if added != self._done[place]:
                    self._index_at(place, relations).done = added
                    self._done[place] = added
