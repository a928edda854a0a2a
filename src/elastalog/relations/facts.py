"""Facts as they are handed out: a relation of answers, in every form that Python knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from elastalog.analysis.program import Base, Value
from elastalog.analysis.values import public_value
from elastalog.diagnostics.arguments import require_number
from elastalog.relations.limits import Words
from elastalog.relations.record_types import NotOfType
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

SHOWN = 10
"""Facts shown by `repr`."""


@dataclass(frozen=True, slots=True)
class FactWords:
    """Facts with their annotations, where there are any. Possibly views of a backend's memory: not to be written to."""

    words: Words
    level: np.ndarray | None = None
    count: np.ndarray | None = None

    @staticmethod
    def nothing(width: int) -> FactWords:
        """No facts, with annotations."""
        nothing = np.empty(0, np.int32)
        return FactWords(np.empty((0, width), np.int32), nothing, nothing)


class Relation:
    """The facts of a relation, or the answers to a query. `len`, iteration over tuples of Python values, `in`,
    conversion to Arrow, pandas and polars; anything that speaks the Arrow stream protocol can read it directly.

    The relations of a session are live: they show the latest epoch whenever they are read."""

    make_frame: ClassVar[Callable[[Relation, bool, Any], Any] | None] = None
    """Makes a Spark DataFrame; set by the floor that knows Spark."""

    def __init__(
        self,
        schema: Schema,
        dictionary: Dictionary,
        fetch: Callable[[], FactWords],
        *,
        size: Callable[[], int] | None = None,
        contains: Callable[[Words], bool] | None = None,
        filed: Callable[[bool], Any] | None = None,
    ) -> None:
        self.schema = schema
        self._dictionary = dictionary
        self._fetch = fetch
        self._size = size
        self._contains = contains
        self._filed = filed

    @staticmethod
    def of(schema: Schema, dictionary: Dictionary, words: Words) -> Relation:
        """A relation of given facts."""
        return Relation(schema, dictionary, lambda: FactWords(words))

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def dictionary(self) -> Dictionary:
        """What its words mean."""
        return self._dictionary

    def filed(self, annotations: bool) -> Any:
        """The files that the facts are in, if a backend has them nowhere else; with annotations if these are
        wanted."""
        return None if self._filed is None else self._filed(annotations)

    def __len__(self) -> int:
        return self._size() if self._size is not None else len(self._fetch().words)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        words = self._fetch().words
        if not self.schema.columns:
            return iter([()] * len(words))
        columns = [self._values(column.base, words[:, i]) for i, column in enumerate(self.schema.columns)]
        return iter(zip(*columns, strict=True))

    def _values(self, base: Base, words: Words) -> list[Value]:
        """The values of a column as Python has them: nil is `None`."""
        if base is not Base.RECORD:
            listed: list[Value] = self._dictionary.decode_column(base, words).to_pylist()
            return listed
        return list(map(public_value, self._dictionary.decode_records(words)))

    def __contains__(self, fact: object) -> bool:
        if not isinstance(fact, tuple) or len(fact) != self.schema.arity:
            return False
        found: list[int] = []
        for column, value in zip(self.schema.columns, fact, strict=True):
            try:
                given = value if column.record is None else column.record.typed(value)
                word = self._dictionary.find_value(column.base, given)
            except (ValueError, NotOfType):
                return False
            if word is None:
                return False
            found.append(word)
        row = np.array([found or [0]], np.int32)
        if self._contains is not None:
            return self._contains(row)
        words = self._fetch().words
        return bool(len(words)) and (not found or bool((words == row).all(axis=1).any()))

    def to_arrow(self, annotations: bool = False) -> pa.Table:
        """An Arrow table. With `annotations`, columns `@level` and `@count` follow, if the strategy keeps them."""
        from elastalog.relations.tables import to_table

        facts = self._fetch()
        extra = {}
        if annotations and facts.level is not None and facts.count is not None:
            extra = {"@level": facts.level, "@count": facts.count}
        return to_table(self.schema, facts.words, self._dictionary, extra)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_spark(self, annotations: bool = False, spark: Any = None) -> Any:
        """A Spark DataFrame, in a Spark session or in the one that is running."""
        assert Relation.make_frame is not None
        return Relation.make_frame(self, annotations, spark)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def head(self, number: int = SHOWN) -> list[tuple[Value, ...]]:
        """The first facts, in no particular order."""
        require_number("number", number, 0, whole=True, or_none=False)
        words = self._fetch().words[:number]
        return list(Relation.of(self.schema, self._dictionary, words))

    def __repr__(self) -> str:
        size = len(self)
        lines = [f"{self.schema}: {size:,} {'fact' if size == 1 else 'facts'}"]
        lines += ["  " + ", ".join(map(repr, fact)) for fact in self.head()]
        if size > SHOWN:
            lines.append("  …")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        size = len(self)
        header = "".join(f"<th>{escape(name)}</th>" for name in self.schema.names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in fact) + "</tr>" for fact in self.head()
        )
        more = f"<tr><td colspan='{max(self.schema.arity, 1)}'>…</td></tr>" if size > SHOWN else ""
        caption = f"<caption>{escape(self.name)}: {size:,} facts</caption>"
        return f"<table>{caption}<thead><tr>{header}</tr></thead><tbody>{rows}{more}</tbody></table>"
