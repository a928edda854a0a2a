"""What lies between two epochs of a store, and between a store and the fixpoint it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from elastalog.backends.protocol import GONE, Backend, ChangedWords, Matrix, StateChanges, Vector
from elastalog.backends.rows import places_in
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.changes import Changes, InOneFrame, RelationChanges
from elastalog.late import dataclass
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.relations.facts import Relation
from elastalog.relations.pairs import Rows
from elastalog.relations.schema import Schema, schema_named
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.words import Dictionary
from elastalog.storage.history import ever_equivalences, net_changes, pairs_between, visible
from elastalog.storage.store import Store


class Difference(RelationChanges):
    """How one relation differs between two epochs. `moved`: the facts whose lowest proofs have another height in the
    later one, with columns `@was` and `@level`."""

    __slots__ = ("moved",)

    def __init__(self, inserted: Relation, deleted: Relation, moved: pa.Table) -> None:
        super().__init__(inserted, deleted)
        self.moved = moved

    def __repr__(self) -> str:
        moved = f"\n  ~{self.moved.num_rows:,} with another level" if self.moved.num_rows else ""
        return f"{super().__repr__()}{moved}"


class Differences(InOneFrame[Difference]):
    """How relations differ between two epochs: like `Changes`, with the facts that have other levels besides. Every
    declared relation has an entry; those without any difference are left out of iteration. Asking for another raises
    ElastalogError. `added_rules`, `removed_rules` and `added_declarations`: how the program changed, printed."""

    added_rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    added_declarations: tuple[str, ...] = ()

    def __init__(self, found: Mapping[str, Difference], nothing: Callable[[str], Difference]) -> None:
        """`nothing` makes the entry of a relation that is not different."""
        self._found = found
        self._nothing = nothing

    def __getitem__(self, relation: str) -> Difference:
        found = self._found.get(relation)
        return self._nothing(relation) if found is None else found

    def __contains__(self, relation: object) -> bool:
        return relation in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def among(self, changes: Changes) -> Differences:
        """With other changes of facts, and none of levels."""
        parts = {n: Difference(c.inserted, c.deleted, self._nothing(n).moved) for n, c in changes.items()}
        found = Differences(parts, self._nothing)
        found.added_rules, found.removed_rules = self.added_rules, self.removed_rules
        found.added_declarations = self.added_declarations
        return found

    @property
    def impact(self) -> int:
        """How many facts came or went."""
        return sum(map(len, self._found.values()))

    def _repr_html_(self) -> str:
        rows = [(n, f"+{len(d.inserted):,}", f"-{len(d.deleted):,}", f"{d.moved.num_rows:,}") for n, d in self.items()]
        return html_table(counted(self.impact, "change"), ("relation", "inserted", "deleted", "other levels"), rows)

    def __repr__(self) -> str:
        lines = [counted(self.impact, "change")]
        for name, found in self._found.items():
            moved = f" ~{found.moved.num_rows:,}" if found.moved.num_rows else ""
            lines.append(f"  {name}: +{len(found.inserted):,} -{len(found.deleted):,}{moved}")
        lines += [f"  rule added: {rule}" for rule in self.added_rules]
        lines += [f"  rule removed: {rule}" for rule in self.removed_rules]
        return "\n".join(lines)


def net_words(store: Store, first: int, last: int, schemas: Mapping[str, Schema]) -> ChangedWords:
    """The facts of declared relations that came and went from one epoch to a later one."""
    store.require(first)
    store.require(last)
    found: dict[str, tuple[Rows, Rows]] = {}
    for name in ever_equivalences(store, first, last) & schemas.keys():
        pairs = pairs_between(store, name, first, last)
        if any(map(len, pairs)):
            found[name] = pairs
    for name, changed in _stored(store, first, last, schemas).items():
        came = changed.words[(changed.was == GONE) & (changed.level != GONE)]
        went = changed.words[(changed.was != GONE) & (changed.level == GONE)]
        if len(came) or len(went):
            found[name] = came, went
    return found


def _stored(store: Store, first: int, last: int, schemas: Mapping[str, Schema]) -> dict[str, StateChanges]:
    """What is stored otherwise of declared relations, but for those that are kept as classes."""
    changes = visible(net_changes(store.turned(first, last)), schemas)
    by_classes = ever_equivalences(store, first, last)
    return {name: changed for name, changed in changes.items() if name not in by_classes}


def difference(
    store: Store, first: int, last: int, schemas: Mapping[str, Schema], dictionary: Dictionary
) -> Differences:
    """The net difference of declared relations from one epoch to another; those without any are left out."""
    store.require(first)
    store.require(last)

    def entry(
        name: str, came: Rows, went: Rows, moved: Matrix | None = None, levels: Mapping[str, Vector] | None = None
    ) -> Difference:
        schema = schema_named(schemas, name)
        moved = np.empty((0, schema.arity), np.int32) if moved is None else moved
        inserted, deleted = (Relation.of(schema, dictionary, rows, make_frame) for rows in (came, went))
        return Difference(inserted, deleted, to_table(schema, moved, dictionary, levels or {}))

    def nothing(name: str) -> Difference:
        words = np.empty((0, schema_named(schemas, name).arity), np.int32)
        return entry(name, words, words)

    found = {}
    for name in ever_equivalences(store, first, last) & schemas.keys():
        came, went = pairs_between(store, name, first, last)
        if len(came) or len(went):
            found[name] = entry(name, came, went)
    for name, changed in _stored(store, min(first, last), max(first, last), schemas).items():
        before, after = (changed.was, changed.level) if first <= last else (changed.level, changed.was)
        is_moved = (before != GONE) & (after != GONE)
        levels = {"@was": before[is_moved], "@level": after[is_moved]}
        words = changed.words
        found[name] = entry(name, words[before == GONE], words[after == GONE], words[is_moved], levels)
    return Differences(found, nothing)


@dataclass(frozen=True, slots=True)
class Verification:
    """How a materialisation compares with the fixpoint, by relation: facts that should be there, facts that should
    not, and facts with a wrong level or count. Empty when all is well. `same_way`: the relations whose rules were
    evaluated in the way that sessions evaluate them, since there is no other for them: choice domains, subsumption,
    equivalences. A mistake of that way would not be seen there."""

    missing: Mapping[str, int]
    unwanted: Mapping[str, int]
    misplaced: Mapping[str, int]
    same_way: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        return not (self.missing or self.unwanted or self.misplaced)

    def __repr__(self) -> str:
        found = {"missing": self.missing, "unwanted": self.unwanted, "with another level or count": self.misplaced}
        told = [f"{number:,} {what} in {name}" for what, each in found.items() for name, number in each.items()]
        return f"<Verification: {'; '.join(told) or 'exact'}>"


def compare(
    schemas: Mapping[str, Schema],
    dictionary: Dictionary,
    backend: Backend,
    right_dictionary: Dictionary,
    right: Backend,
    is_annotated: bool = True,
) -> Verification:
    """Compares the declared relations of a backend with those of one that is right; their levels and counts only if
    both mean the same by them. Which level a fact has that subsumption has left is a matter of history: only whether it
    is explicit is compared. So it is which pairs a recursion has stored of an equivalence: the classes are compared,
    and the explicit pairs."""
    subsumed = {name for stratum in backend.program.strata if stratum.dominance for name in stratum.relations}
    merged = backend.program.merged
    missing: dict[str, int] = {}
    unwanted: dict[str, int] = {}
    misplaced: dict[str, int] = {}
    for name, schema in schemas.items():
        have, want = backend.states.of(name), right.states.of(name)
        if name in merged:
            have, want = (
                facts.taken(side.is_explicit(name, facts.words)) for side, facts in ((backend, have), (right, want))
            )
        words = have.words
        if schema.arity:
            words = to_words(schema, to_table(schema, have.words, dictionary, {}), right_dictionary)
        if backend.program.relations[name].classes is not None and backend.size(name) != right.size(name):
            misplaced[name] = abs(backend.size(name) - right.size(name))
        classes = backend.program.relations[name].classes
        if name in merged and classes is not None:
            now = to_words(schema, to_table(schema, backend.states.of(classes).words, dictionary, {}), right_dictionary)
            is_known = places_in(_by_least_member(now), _by_least_member(right.states.of(classes).words)) >= 0
            if not is_known.all():
                unwanted[name] = int((~is_known).sum())
        place = places_in(words, want.words)
        is_there = place >= 0
        number = int(is_there.sum())
        assert have.level is not None
        assert have.count is not None
        assert want.level is not None
        assert want.count is not None
        levels, right_levels = have.level[is_there], want.level[place[is_there]]
        if name in subsumed or not is_annotated:
            known = backend.is_explicit(name, have.words)[is_there]
            wrong = known != right.is_explicit(name, want.words)[place[is_there]]
        else:
            wrong = (levels != right_levels) | (have.count[is_there] != want.count[place[is_there]])
        for found, size in (
            (missing, len(want.words) - number),
            (unwanted, len(words) - number),
            (misplaced, int(wrong.sum())),
        ):
            if size:
                found[name] = found.get(name, 0) + size
    return Verification(missing, unwanted, misplaced)


def _by_least_member(classes: Matrix) -> Matrix:
    """Members with the representatives of their classes; instead of these, the least members."""
    known, place = np.unique(classes[:, 1], return_inverse=True)
    least = np.full(len(known), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(least, place, classes[:, 0])
    return np.stack((classes[:, 0], least[place]), axis=1)
