"""What lies between two epochs of a store, and between a store and the fixpoint it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from elastalog.backends.protocol import GONE, Backend, ChangedWords, Matrix, Vector
from elastalog.backends.rows import places_in
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.changes import Changes, RelationChanges
from elastalog.late import dataclass
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.relations.facts import Decodings, Relation
from elastalog.relations.pairs import Rows
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.words import Dictionary
from elastalog.storage.history import ever_equivalences, net_changes, pairs_between, visible
from elastalog.storage.store import Store

NOTHING: Final[Mapping[str, Any]] = {}


class Difference(RelationChanges):
    """How one relation differs between two epochs. `moved`: the facts whose lowest proof has another height in the
    later one, with columns `@was` and `@level`."""

    __slots__ = ("moved",)

    def __init__(self, inserted: Relation, deleted: Relation, moved: pa.Table) -> None:
        super().__init__(inserted, deleted)
        self.moved = moved

    def __repr__(self) -> str:
        moved = f"\n  ~{self.moved.num_rows:,} with another level" if self.moved.num_rows else ""
        return f"{super().__repr__()}{moved}"


Moved: TypeAlias = Mapping[str, tuple[Matrix, Mapping[str, Vector]]]
"""Facts with other levels by relation, and their levels before and after, as `Difference` has them."""


class Differences(Changes):
    """How relations differ between two epochs: like `Changes`, with the facts that have other levels besides.
    `added_rules`, `removed_rules` and `added_declarations`: how the program changed, printed."""

    added_rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    added_declarations: tuple[str, ...] = ()

    def __init__(
        self, words: ChangedWords, schemas: Mapping[str, Schema], dictionary: Dictionary, moved: Moved = NOTHING
    ) -> None:
        super().__init__(words, Decodings(schemas, dictionary, make_frame))
        self._moved = moved

    def __getitem__(self, relation: str) -> Difference:
        changed = super().__getitem__(relation)
        schema = changed.inserted.schema
        words, levels = self._moved.get(schema.name, (np.empty((0, schema.arity), np.int32), NOTHING))
        return Difference(
            changed.inserted, changed.deleted, to_table(schema, words, self._decodings.dictionary, levels)
        )

    def __contains__(self, relation: object) -> bool:
        return relation in self._listed

    items = Mapping.items
    values = Mapping.values

    def among(self, changes: Changes) -> Differences:
        """With other changes of facts, and none of levels."""
        found = Differences(dict(changes._listed), self.schemas, self._decodings.dictionary)
        found.added_rules, found.removed_rules = self.added_rules, self.removed_rules
        found.added_declarations = self.added_declarations
        return found

    def _numbers(self) -> list[tuple[str, str, str, int]]:
        moved = {name: len(words) for name, (words, _) in self._moved.items()}
        return [(n, f"+{len(came):,}", f"-{len(went):,}", moved.get(n, 0)) for n, (came, went) in self._listed.items()]

    def _repr_html_(self) -> str:
        rows = [(name, came, went, f"{moved:,}") for name, came, went, moved in self._numbers()]
        return html_table(counted(self.impact, "change"), ("relation", "inserted", "deleted", "other levels"), rows)

    def __repr__(self) -> str:
        lines = [counted(self.impact, "change")]
        lines += [
            f"  {n}: {came} {went}" + (f" ~{moved:,}" if moved else "") for n, came, went, moved in self._numbers()
        ]
        lines += [f"  rule added: {rule}" for rule in self.added_rules]
        lines += [f"  rule removed: {rule}" for rule in self.removed_rules]
        return "\n".join(lines)


def net_words(store: Store, first: int, last: int, schemas: Mapping[str, Schema]) -> ChangedWords:
    """The facts of declared relations that came and went from one epoch to another."""
    return {name: sides for name, sides in _between(store, first, last, schemas)[0].items() if any(map(len, sides))}


def difference(
    store: Store, first: int, last: int, schemas: Mapping[str, Schema], dictionary: Dictionary
) -> Differences:
    """The net difference of declared relations from one epoch to another; those without any are left out."""
    words, moved = _between(store, first, last, schemas)
    return Differences(words, schemas, dictionary, moved)


def _between(
    store: Store, first: int, last: int, schemas: Mapping[str, Schema]
) -> tuple[dict[str, tuple[Rows, Rows]], Moved]:
    """What came and went, and what has other levels. Of what is kept as classes the pairs count, which have none."""
    store.require(first)
    store.require(last)
    by_classes = ever_equivalences(store, first, last)
    found: dict[str, tuple[Rows, Rows]] = {}
    for name in by_classes & schemas.keys():
        pairs = pairs_between(store, name, first, last)
        if any(map(len, pairs)):
            found[name] = pairs
    moved = {}
    for name, changed in visible(net_changes(store.turned(*sorted((first, last)))), schemas).items():
        if name not in by_classes:
            words, before, after = changed.words, changed.was, changed.level
            if last < first:
                before, after = after, before
            found[name] = words[before == GONE], words[after == GONE]
            is_moved = (before != GONE) & (after != GONE)
            moved[name] = words[is_moved], {"@was": before[is_moved], "@level": after[is_moved]}
    return found, moved


@dataclass(frozen=True, slots=True)
class Verification:
    """How a materialisation compares with the fixpoint, by relation: missing facts, unwanted ones, and facts with a
    wrong level or count. Empty when all is well. `same_way`: the relations that sessions, too, can only evaluate in the
    way in which they were evaluated here, as choice domains, subsumption and equivalences: a mistake of that way would
    go unseen."""

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
    """Compares the declared relations of a backend with those of one that is right, and levels and counts only if both
    mean the same by them. The level of a fact that subsumption has left depends on history: only whether it is explicit
    is compared. So does the choice of the pairs that a recursion has stored of an equivalence: the classes and the
    explicit pairs are compared."""
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
