"""What the machine runs for a stratum: variants of clauses as code, relations and indexes as tables of addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ctypes import addressof, c_int64, memmove, sizeof

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.compile.records import Table
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.code import Code, IndexKey, Variant, is_indexed, start_of
from elastalog.backends.kernel.machine.layout import NEVER
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import STAMPS
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.whereabouts import IndexWhereabouts, Place
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.relations.words import Dictionary

_WHEREABOUTS: int = Place.changed.offset  # type: ignore[attr-defined]
_INDEX_WHEREABOUTS: int = sizeof(IndexWhereabouts)
"""Bytes that the records of a relation and of an index begin with: where it is, and how far it goes."""


class MachinePlan:
    """The code of a stratum, and its tables, which are brought up to date before every update.

    Variants that look for heads backwards do so if these were explicit, and those of `recovering` if they lost their
    last derivation. `places`: where the tables lie, in the order of the fields of `Machine` from `relations` on.
    `carried`: words that rows of bindings have behind their slots. `keys`: those of its indexes. `is_ahead`: the
    machine has run, and relations may go further than they know."""

    def __init__(
        self,
        own: Sequence[str],
        flat: frozenset[str],
        forward: Sequence[Variant],
        backward: Sequence[Variant],
        recovering: Sequence[Variant],
        dictionary: Dictionary,
        carried: int = LEVELS,
        whole: Mapping[Variant, tuple[Variant, int]] | None = None,
        forks: Mapping[Variant, Variant] | None = None,
    ) -> None:
        self._indexed: dict[IndexKey, int] = {}
        self._recovering = frozenset(recovering)
        recovered = frozenset(variant.clause.head for variant in recovering)
        sought = frozenset(variant.clause.head for variant in backward)
        forks = forks or {}
        starting = sorted([*forks.values(), *forward], key=lambda variant: start_of(variant) not in own)
        variants = [*starting, *backward]
        positive = frozenset(start_of(v) for v in variants if v.gather.goal is not None and not v.is_negated_start)
        negative = frozenset(start_of(v) for v in variants if v.is_negated_start)
        whole = whole or {}
        laid_out = [*variants, *(variant for variant, _ in whole.values())]
        read = (name for v in laid_out for name in (start_of(v), *(probe.relation for probe in v.probes)))
        self.names = tuple(dict.fromkeys((*own, *read)))
        self.number = {name: number for number, name in enumerate(self.names)}
        # The indexes of a relation of the stratum are neighbours.
        wanted = {(p.relation, p.key_columns) for v in laid_out for p in v.probes if is_indexed(p)}
        for key in sorted(wanted, key=lambda key: (self.number[key[0]], key[1])):
            self._indexed[key] = len(self._indexed)
        self.keys = list(self._indexed)
        self.code = Code(variants, self.number, self._indexed, self._recovering, dictionary, carried, whole, forks)
        self.relations = Table(layout.Relation, len(self.names))
        self.indexes = Table(layout.IndexPlace, len(self._indexed))
        self._own = frozenset(own)
        self._looked_up = self._own.union(p.relation for v in laid_out for p in v.probes if p.is_member)
        self._indexes_of = {name: [place for place, key in enumerate(self.keys) if key[0] == name] for name in own}
        for name, row in zip(self.names, self.relations, strict=True):
            places = self._indexes_of.get(name, ())
            row.is_flat = name in flat
            row.is_own = name in self._own
            row.starts = (
                layout.FORWARDS * (name in positive)
                | layout.AGAINST * (name in negative)
                | layout.SOUGHT * (name in recovered)
                | layout.SOUGHT_IF_EXPLICIT * (name in sought)
            )
            if name in self._own and name in self.code.ahead:
                row.ahead, row.ahead_end = self.code.ahead[name]
            row.first_index = min(places, default=0)
            row.indexes_end = max(places, default=-1) + 1
        for (name, _), place in zip(self.keys, self.indexes, strict=True):
            place.relation = self.number[name]
        own_variants = sum(start_of(variant) in own for variant in starting)
        tables = self.relations.address, len(self.names), self.indexes.address, *self.code.places, own_variants
        self.places = (c_int64 * len(tables))(*tables)
        self.is_ahead = False
        self._stamps = [-1] * len(self.names)
        self._index_stamps = [-1] * len(self.keys)
        self._verified = -1

    # --- tables ----------------------------------------------------------------------------------------------------

    def refresh(self, relations: Mapping[str, KernelRelation]) -> None:
        """Writes where relations and indexes are now. An index that was never made, or lacks rows, is missing until the
        machine asks for it."""
        for number, name in enumerate(self.names):
            self.refresh_relation(number, relations[name])
        for place, (name, columns) in enumerate(self.keys):
            relation, row = relations[name], self.indexes[place]
            # A drive that had the plan before has left where the index was then, which may be gone.
            row.home = 0
            if relation.lacks(columns):
                row.is_missing, row.added = 1, NEVER
            else:
                self.refresh_index(place, relation.index(columns))

    def verify(self, relations: Mapping[str, KernelRelation]) -> None:
        """Nothing has moved since it was written down where it is: before the machine reads what is there no more."""
        if self._verified == STAMPS.last:
            return
        for number, name in enumerate(self.names):
            # A set table that nobody looked facts up in may be made at any time.
            if name in self._looked_up and relations[name].stamp != self._stamps[number]:
                raise InternalError("machine", f"`{name}` has moved under a plan")
        for place, (name, columns) in enumerate(self.keys):
            if not self.indexes[place].is_missing:
                index = relations[name].index_to_extend(columns)
                if index is None or index.stamp != self._index_stamps[place]:
                    raise InternalError("machine", f"the index of `{name}` on {columns} has moved under a plan")
        self._verified = STAMPS.last

    def refresh_relation(self, number: int, relation: KernelRelation) -> None:
        """Writes where a relation is, and how far it goes."""
        found = relation.lay_out(with_table=self.names[number] in self._looked_up)
        memmove(addressof(self.relations[number]), addressof(found), _WHEREABOUTS)
        self._stamps[number] = relation.stamp

    def refresh_touched(self, relations: Mapping[str, KernelRelation]) -> None:
        """Writes where touched entries are, and nothing else: for who takes marks off after an interruption, which may
        have come when an array had moved and nobody had been told."""
        for name, row in zip(self.names, self.relations, strict=True):
            touched = relations[name].touched
            row.touched, row.touched_room = address_of(touched), len(touched)

    def refresh_index(self, place: int, index: Index) -> None:
        """Writes where an index is, and how far it goes."""
        row = self.indexes[place]
        memmove(addressof(row), addressof(index.lay_out()), _INDEX_WHEREABOUTS)
        row.is_missing = 0
        self._index_stamps[place] = index.stamp

    def extend_index(self, place: int, relations: Mapping[str, KernelRelation]) -> None:
        """Brings an index up to date that is missing, or had no room."""
        name, columns = self.keys[place]
        self.refresh_index(place, relations[name].index(columns))

    def know_index(self, place: int, relations: Mapping[str, KernelRelation]) -> None:
        """Tells an index how far the machine has brought it."""
        row, (name, columns) = self.indexes[place], self.keys[place]
        if not row.is_missing:
            index = relations[name].index_to_extend(columns)
            if index is None:
                raise InternalError("machine", f"the index of `{name}` on {columns} was dropped while in use")
            index.done = row.added

    def keep(self, relations: Mapping[str, KernelRelation], own: Iterable[str]) -> None:
        """Tells the stratum's relations and their indexes how far they go, if they have not been told since the machine
        ran. What was not told because something interrupted it is told the next time."""
        if not self.is_ahead:
            return
        for name in own:
            row, relation = self.relations[self.number[name]], relations[name]
            relation.used, relation.touched_used = row.used, row.touched_used
            if row.touched_used:
                relation.is_settled = False
        self.is_ahead = False
        for name in own:
            for place in self._indexes_of[name]:
                self.know_index(place, relations)
