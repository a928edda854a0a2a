"""An update, as words by relation and rules that come and go; and what an epoch changed, by relation."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import ChangedWords, ListedChanges, Matrix, impact_of
from elastalog.backends.rows import first_and_last
from elastalog.deprecated import Renamed
from elastalog.diagnostics.arguments import require_package, stays_here
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass
from elastalog.program import RuleChange
from elastalog.relations.facts import Decodings, ListedRelation, Relation
from elastalog.relations.pairs import Rows, written_out
from elastalog.relations.schema import Schema, schema_named

if TYPE_CHECKING:
    import pandas
    import polars

    from elastalog.pipeline.files.policy import Report


_SHOWN = 10
"""Facts of each side that are named."""


class RelationChanges:
    """The facts of one relation that came and went. Their words are decoded when they are read."""

    __slots__ = ("deleted", "inserted")

    def __init__(self, inserted: Relation, deleted: Relation) -> None:
        self.inserted = inserted
        self.deleted = deleted

    def __len__(self) -> int:
        return len(self.inserted) + len(self.deleted)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with a row for each fact: `op` (`+` or `-`), and the attributes of the relation."""
        frame = require_package("pandas").concat(
            [self.deleted.to_pandas(), self.inserted.to_pandas()], ignore_index=True
        )
        frame.insert(0, "op", self._signs, allow_duplicates=True)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Like `to_pandas`, but a polars data frame."""
        frames = require_package("polars")
        frame = frames.concat([self.deleted.to_polars(), self.inserted.to_polars()])
        found: polars.DataFrame = frame.insert_column(0, frames.Series("op", self._signs, dtype=frames.String))
        return found

    @property
    def _signs(self) -> list[str]:
        return ["-"] * len(self.deleted) + ["+"] * len(self.inserted)

    def __repr__(self) -> str:
        from elastalog.analysis.listing import show_value

        name = self.inserted.name
        lines = [f"{name}: +{len(self.inserted):,} -{len(self.deleted):,}"]
        for sign, facts in (("+", self.inserted), ("-", self.deleted)):
            lines += [f"  {sign}{name}({', '.join(map(show_value, values))})" for values in facts.head(_SHOWN)]
            lines += [f"  {sign}…"] * (len(facts) > _SHOWN)
        return "\n".join(lines)


_TYPES: Final = {Base.NUMBER: "Int64", Base.UNSIGNED: "UInt64", Base.FLOAT: "Float64"}
"""What polars calls them, and pandas."""


class Changes(Renamed, Mapping[str, RelationChanges]):
    """By relation. Every declared relation has an entry; iteration gives those that changed. Asking for any other
    raises ElastalogError."""

    reports: tuple[Report, ...] = ()
    """What was taken of the rows of the update, where bad rows may pass."""
    is_repeated = False
    """Whether its batch had been applied before, so that it did nothing."""
    ignored = 0
    """How many facts of the update changed nothing: they were there already, or not there to be deleted."""

    def __init__(self, words: ChangedWords, decodings: Decodings) -> None:
        self._listed = words
        self._decodings = decodings
        self._made: dict[str, RelationChanges] | None = None

    __reduce__ = stays_here("what an update changed", "hand on `changes.to_pandas()`, or rows of its relations")

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self._decodings.schemas

    def __getitem__(self, relation: str) -> RelationChanges:
        schema = schema_named(self.schemas, relation)
        nothing = self._decodings[schema.name].nothing
        return self._all().get(relation) or RelationChanges(nothing, nothing)

    def _all(self) -> dict[str, RelationChanges]:
        made = self._made
        if made is None:
            made, listed, decodings = {}, self._listed, self._decodings
            if type(listed) is ListedChanges:
                words, names = listed.words, listed.names
                for number, _, first, came, later, went in listed.placed():
                    name = names[number]
                    decoding = decodings[name]
                    made[name] = RelationChanges(
                        ListedRelation((decoding, words, first, came)) if came else decoding.nothing,
                        ListedRelation((decoding, words, later, went)) if went else decoding.nothing,
                    )
            else:
                for name, sides in listed.items():
                    made[name] = RelationChanges(*map(decodings[name].relation_of, sides))
            self._made = made
        return made

    def items(self) -> ItemsView[str, RelationChanges]:
        return self._all().items()

    def values(self) -> ValuesView[RelationChanges]:
        return self._all().values()

    def __contains__(self, relation: object) -> bool:
        return isinstance(relation, str) and super().__contains__(relation)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def impact(self) -> int:
        """How many facts came or went, explicit ones included."""
        return impact_of(self._listed)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with a row for each fact: columns `op` (`+` or `-`), `relation`, and its values `a1`,
        `a2`, …, as a stream of updates has them. Values of several types in a place are objects, and whole numbers
        stay so where others are missing. `changes["path"].to_pandas()` has the attributes of a relation."""
        frame: pandas.DataFrame = self._frame(require_package("pandas"))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As `to_pandas`, a polars data frame; where relations have values of different types in a place, and for
        records, texts."""
        frame: polars.DataFrame = self._frame(require_package("polars"))
        return frame

    def _frame(self, frames: Any) -> Any:
        sides = [side for _, both in self.items() for side in (("-", both.deleted), ("+", both.inserted))]
        facts = [(op, relation, fact) for op, relation in sides for fact in relation]
        is_polars = frames.__name__ == "polars"
        texts = "String" if is_polars else "object"
        heads = {"op": [op for op, _, _ in facts], "relation": [relation.name for _, relation, _ in facts]}
        columns = {key: frames.Series(told, dtype=getattr(frames, texts, texts)) for key, told in heads.items()}
        for i in range(max((len(fact) for _, _, fact in facts), default=0)):
            bases = {relation.schema.columns[i].base for _, relation, fact in facts if i < len(fact)}
            kind = _TYPES.get(bases.pop(), texts) if len(bases) == 1 else texts
            values = [fact[i] if i < len(fact) else None for _, _, fact in facts]
            if kind == "String":
                values = [v if v is None or isinstance(v, str) else repr(v) for v in values]
            elif not is_polars and (None not in values or kind == "Float64"):
                kind = kind.lower()  # those in capitals can say that a whole number is missing
            columns[f"a{i + 1}"] = frames.Series(values, dtype=getattr(frames, kind, kind))
        return frames.DataFrame(columns)

    def _repr_html_(self) -> str:
        rows = [(name, f"+{len(came):,}", f"-{len(went):,}") for name, (came, went) in self._listed.items()]
        return html_table(counted(self.impact, "change"), ("relation", "inserted", "deleted"), rows)

    def __repr__(self) -> str:
        lines = [counted(self.impact, "change")]
        if self.is_repeated:
            lines[0] += ": this batch was applied before"
        elif self.ignored:
            lines[0] += f", {self.ignored:,} without effect"
        for name, (inserted, deleted) in self._listed.items():
            lines.append(f"  {name}: +{len(inserted):,} -{len(deleted):,}")
        return "\n".join(lines)


@dataclass(slots=True)  # not frozen: there are many
class Update:
    """A fact in both ends up present. `source` and `batch` identify an update that came from a stream. `rules`: how the
    program changes, if it does. `digest`: of what was asked for, where another update could come under the same batch.
    """

    deleted: Mapping[str, Matrix] = field(default_factory=dict)
    inserted: Mapping[str, Matrix] = field(default_factory=dict)
    source: str | None = None
    batch: str | int | None = None
    rules: RuleChange | None = None
    digest: str | None = None

    @property
    def size(self) -> int:
        """How many facts it names."""
        deleted, inserted = self.deleted, self.inserted
        # Most often one of them is empty.
        number = sum(map(len, deleted.values())) if deleted else 0
        return number + sum(map(len, inserted.values())) if inserted else number


@dataclass(frozen=True, slots=True)
class RuleTexts:
    """The rules and directives that an epoch removed and added, printed."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @staticmethod
    def of(change: RuleChange) -> RuleTexts:
        told, untold = change.directives
        return RuleTexts((*change.removed, *untold), (*change.added, *told))

    @property
    def alone(self) -> RuleTexts:
        """Without the directives."""
        return RuleTexts(*(tuple([t for t in side if not t.startswith(".")]) for side in (self.removed, self.added)))

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


NO_RULES: Final = RuleTexts()


def net_of(steps: Iterable[tuple[Mapping[str, Rows], Mapping[str, Rows]]]) -> ChangedWords:
    """The facts that came and those that went, by relation, after a row of steps that have deleted and inserted facts.
    A fact that came and went again is in neither."""
    parts: dict[str, list[tuple[bool, Matrix]]] = {}
    for deleted, inserted in steps:
        for has_come, side in ((False, deleted), (True, inserted)):
            for name, rows in side.items():
                if len(rows):
                    parts.setdefault(name, []).append((has_come, written_out(rows)))
    found: dict[str, tuple[Rows, Rows]] = {}
    for name, some in parts.items():
        words = np.concatenate([rows for _, rows in some])
        came = np.repeat([is_there for is_there, _ in some], [len(rows) for _, rows in some])
        first, last = first_and_last(words)
        # What is deleted was there, and what is inserted was not: the first change tells what was before.
        first = first[came[first] == came[last]]
        if len(first):
            found[name] = words[first[came[first]]], words[first[~came[first]]]
    return found
