"""Facts as they are handed out: a relation of answers, in every form that Python knows."""

from __future__ import annotations

import reprlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from itertools import chain, repeat
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Never, TypeAlias, TypeGuard

import numpy as np

from elastalog.analysis.program import Value
from elastalog.analysis.values import sort_key
from elastalog.deprecated import Renamed
from elastalog.diagnostics import quota
from elastalog.diagnostics.arguments import require_number, require_one_of, require_package, stays_here, wrong_kind
from elastalog.diagnostics.diagnostic import InternalError, finding, warn_of
from elastalog.diagnostics.display import html_table
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass
from elastalog.relations.limits import WORD, Words
from elastalog.relations.pairs import Pairs, Rows, written_out
from elastalog.relations.records import NotOfType
from elastalog.relations.schema import Schema, schema_named
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

_BLOCK = 1 << 16
"""Facts that are decoded at a time."""

LEVEL, COUNT = "@level", "@count"
"""What annotations are called as columns."""

SHOWN = 10
"""Facts shown by `repr`."""


@dataclass(slots=True)  # not frozen: there are many
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

    @staticmethod
    def joined(parts: Sequence[FactWords]) -> FactWords:
        """Facts with annotations, one after the other."""
        sides = ([part.words for part in parts], [part.level for part in parts], [part.count for part in parts])
        return FactWords(*map(np.concatenate, sides))  # type: ignore[arg-type]

    def taken(self, rows: Any) -> FactWords:
        """Some of the facts: by numbers of rows, a slice, or whether each is wanted."""
        level, count = self.level, self.count
        return FactWords(
            self.words[rows], None if level is None else level[rows], None if count is None else count[rows]
        )

    def copied(self) -> FactWords:
        """The facts, whatever becomes of the memory that they are in."""
        parts = self.words, self.level, self.count
        quota.ask(sum(part.nbytes for part in parts if part is not None))
        return FactWords(*(None if part is None else part.copy() for part in parts))  # type: ignore[arg-type]


@cache
def _row_type(names: tuple[str, ...]) -> type[tuple[Value, ...]]:
    """Tuples that have names for their values, as named tuples do; otherwise they are just tuples."""
    as_plain_tuple = lambda row: (tuple, (tuple(row),))  # noqa: E731  # another process would not know the class
    return type("Row", (tuple,), {"__slots__": (), "_fields": names, "__reduce__": as_plain_tuple})


FrameMaker: TypeAlias = "Callable[[Relation, bool, Any], Any]"
"""Makes a Spark DataFrame of a relation, with annotations or without, in a Spark session or in the running one."""


class Relation(Renamed):
    """The facts of a relation, or the answers to a query: `len`, iteration over tuples of Python values, `in`,
    conversion to Arrow, pandas and polars. Anything that speaks the Arrow stream protocol can read it directly.

    The relations of a session are live: they show the latest epoch whenever they are read.
    """

    def __init__(
        self,
        schema: Schema,
        dictionary: Dictionary,
        fetch: Callable[[], FactWords],
        *,
        size: Callable[[], int] | None = None,
        pairs: Callable[[], Pairs | None] | None = None,
        contains: Callable[[list[int]], bool] | None = None,
        filed: Callable[[bool], Any] | None = None,
        make_frame: FrameMaker | None = None,
    ) -> None:
        """`pairs`: the facts of an equivalence that is kept as classes, to be written out in parts. `make_frame` is
        what `to_spark` does, for floors that know Spark."""
        self.schema = schema
        self._dictionary = dictionary
        self._fetch = fetch
        self._size = size
        self._pairs = pairs
        self._contains = contains
        self._filed = filed
        self._make_frame = make_frame

    @staticmethod
    def of(schema: Schema, dictionary: Dictionary, words: Rows, make_frame: FrameMaker | None = None) -> Relation:
        """A relation of given facts."""
        return GivenRelation(schema, dictionary, words, make_frame)

    __reduce__ = stays_here("a relation", "hand on its rows, `list(relation)`, or the table that `to_arrow` makes")

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def dictionary(self) -> Dictionary:
        """What its words mean."""
        return self._dictionary

    def fact_words(self) -> FactWords:
        """The facts as words. Of a session's relation: valid until its next update."""
        return self._fetch()

    def filed(self, annotations: bool) -> Any:
        """The files that the facts are in, if a backend has them nowhere else; with annotations if these are
        wanted."""
        return None if self._filed is None else self._filed(annotations)

    def __len__(self) -> int:
        return self._size() if self._size is not None else len(self._fetch().words)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        pairs = None if self._pairs is None else self._pairs()
        if pairs is not None:
            return _of_blocks(pairs.blocks(), self.schema, self._dictionary)
        return _facts(self._fetch().words, self.schema, self._dictionary)

    def _may_hold(self, fact: object) -> TypeGuard[tuple[Any, ...]]:
        """Whether what is looked for here is a tuple of as many values as there are columns; warns if it is not."""
        if isinstance(fact, tuple) and len(fact) == self.schema.arity:
            return True
        told = reprlib.repr(fact)
        warn_of(finding("E0607.never", severity="warning", told=told, schema=self.schema, arity=self.schema.arity))
        return False

    def __contains__(self, fact: object) -> bool:
        columns = self.schema.columns
        if not isinstance(fact, tuple) or len(fact) != len(columns):
            return self._may_hold(fact)
        try:
            found = self._dictionary.find_row(columns, fact)
        except (ValueError, NotOfType):
            return False
        if found is None:
            return False
        contains = self._contains
        if contains is not None:
            return contains(found or [0])
        words = self._fetch().words
        return bool(len(words)) and (not found or bool((words == found).all(axis=1).any()))

    def __eq__(self, other: object) -> bool:
        return set(self) == set(other) if isinstance(other, Relation | Set) else NotImplemented

    __hash__ = object.__hash__  # it is live: what it holds may change

    def __sub__(self, other: Iterable[Any]) -> set[tuple[Value, ...]]:
        return set(self).difference(other)

    def __rsub__(self, other: Iterable[Any]) -> set[Any]:
        return set(other).difference(self)

    def __and__(self, other: Iterable[Any]) -> set[tuple[Value, ...]]:
        return set(self).intersection(other)

    def __or__(self, other: Iterable[Any]) -> set[tuple[Value, ...]]:
        return set(self).union(other)

    def __getitem__(self, place: object) -> Never:
        if isinstance(place, str):
            getattr(self, place)  # a column, which there is a hint for
        values = ", ".join(["…", *["_"] * (self.schema.arity - 1)])
        advice = f"`relation.sort().head(3)` is a list of the first three; `db.query('{self.name}({values})')` looks up"
        raise wrong_kind(f"what stands in `{self.name}` is asked for by a query", place, advice)

    def to_arrow(self, annotations: bool = False, types: Mapping[str, Any] | None = None) -> pa.Table:
        """An Arrow table. With `annotations`, columns `@level` and `@count` follow, if the strategy keeps them.
        `types`: Arrow types for some columns, as `{"day": "date32", "is_open": "bool"}`."""
        from elastalog.relations.tables import to_table, with_types

        facts = self._fetch()
        extra = {}
        if annotations and facts.level is not None and facts.count is not None:
            extra = {LEVEL: facts.level, COUNT: facts.count}
        table = to_table(self.schema, facts.words, self._dictionary, extra)
        return with_types(table, types) if types else table

    def to_pandas(self, types: Mapping[str, Any] | None = None) -> pandas.DataFrame:
        """A pandas data frame. `types` as in `to_arrow`."""
        require_package("pandas")
        return self.to_arrow(types=types).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame."""
        frame: polars.DataFrame = require_package("polars").from_arrow(self.to_arrow())
        return frame

    def to_spark(self, annotations: bool = False, spark: Any = None) -> Any:
        """A Spark DataFrame, in a Spark session or in the one that is running."""
        if self._make_frame is None:
            raise InternalError("to_spark", f"`{self.name}` was made without a way to Spark")
        return self._make_frame(self, annotations, spark)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def head(self, number: int = SHOWN) -> list[tuple[Value, ...]]:
        """The first facts, in no particular order."""
        require_number("number", number, 0, whole=True, or_none=False)
        pairs = None if self._pairs is None else self._pairs()
        words = self._fetch().words if pairs is None else next(pairs.blocks(), np.empty((0, 2), np.int32))
        if pairs is not None and len(words) < number:
            words = pairs.words()
        return list(Relation.of(self.schema, self._dictionary, words[:number]))

    def filter(self, keep: Callable[..., object] | None = None, /, **columns: Never) -> Relation:
        """The facts for which a function is true, which is called with their values: `lambda x, y: x < y`."""
        if not callable(keep) or columns or not _takes(keep, self.schema.arity):
            for column in columns:
                require_one_of("column", column, self.schema.names)
            names = {name: name + "_" * iskeyword(name) for name in self.schema.names}
            wanted = " and ".join(f"{names[name]} == {value!r}" for name, value in dict[str, object](columns).items())
            advice = f"write `relation.filter(lambda {', '.join(names.values())}: {wanted or '…'})`, or ask `db.query`"
            what = f"what facts are filtered by is a function of their {counted(self.schema.arity, 'value')}"
            raise wrong_kind(what, columns or keep, advice)
        words = self._fetch().words
        kept = np.fromiter((bool(keep(*fact)) for fact in self._of(words)), np.bool_, len(words))
        return self._of(words[kept])

    def sort(self, *columns: str, descending: bool = False, reverse: bool = False) -> Relation:
        """The facts in order: by some columns, or by all from the left. NaN and nil come first. `reverse` is another
        name of `descending`, as Python's `sorted` has it."""
        for column in columns:
            require_one_of("column", column, self.schema.names)
        places = [self.schema.names.index(column) for column in columns] or range(self.schema.arity)
        words = self._fetch().words
        facts = list(self._of(words))
        keys = [[sort_key(fact[place]) for place in places] for fact in facts]
        order = sorted(range(len(facts)), key=keys.__getitem__, reverse=descending or reverse)
        return self._of(words[np.array(order, np.int64)])

    def _of(self, words: Words) -> Relation:
        return GivenRelation(self.schema, self._dictionary, words, self._make_frame)

    def __repr__(self) -> str:
        size = len(self)
        lines = [f"{self.schema}: {size:,} {'fact' if size == 1 else 'facts'}"]
        lines += ["  " + ", ".join(map(repr, fact)) for fact in self.head() if fact]
        if size > SHOWN:
            lines.append("  …")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        size = len(self)
        more = [("…",)] if size > SHOWN else []
        caption = f"{self.name}: {size:,} {'fact' if size == 1 else 'facts'}"
        return html_table(caption, self.schema.names, [*self.head(), *more])


# Functions, since to find an attribute of what is `Renamed` takes longer.


def _takes(function: Callable[..., object], number: int) -> bool:
    """Whether a function can be called with so many values."""
    from inspect import signature

    try:
        signature(function).bind(*range(number))
    except TypeError:
        return False
    except ValueError:  # it does not say
        return True
    return True


def _facts(words: Words, schema: Schema, dictionary: Dictionary) -> Iterator[tuple[Value, ...]]:
    size = len(words)
    if size <= _BLOCK:
        return _named(_decoded(words, schema, dictionary), schema)
    # Decoded as they are asked for: who looks at the first of a million pays for a block.
    blocks = (words[start : start + _BLOCK] for start in range(0, size, _BLOCK))
    return _of_blocks(blocks, schema, dictionary)


def _of_blocks(blocks: Iterable[Words], schema: Schema, dictionary: Dictionary) -> Iterator[tuple[Value, ...]]:
    return _named(chain.from_iterable(_decoded(block, schema, dictionary) for block in blocks), schema)


def _decoded(words: Words, schema: Schema, dictionary: Dictionary) -> Iterator[tuple[Value, ...]]:
    columns = schema.columns
    if schema.is_of_texts:
        one_by_one = iter(dictionary.symbols.texts(words.ravel()))  # quicker than column by column
        return zip(*[one_by_one] * len(columns))  # noqa: B905  # as many for each column
    if not columns:
        return repeat((), len(words))
    values = dictionary.values
    return zip(*[values(column.base, words[:, i]) for i, column in enumerate(columns)], strict=True)


def _named(facts: Iterator[tuple[Value, ...]], schema: Schema) -> Iterator[tuple[Value, ...]]:
    """The facts, the first of which knows the names of the columns: by that `pandas.DataFrame(relation)` has them."""
    for first in facts:
        return chain((_row_type(schema.names)(first),), facts)
    return iter(())


class GivenRelation(Relation):
    """One of given facts. What an update changed are many of them, most of a few facts, so that little is made."""

    _size = _contains = _filed = None

    def __init__(self, schema: Schema, dictionary: Dictionary, rows: Rows, make_frame: FrameMaker | None) -> None:
        self.schema = schema
        self._dictionary = dictionary
        self._rows = rows
        self._make_frame = make_frame

    def _fetch(self) -> FactWords:
        return FactWords(written_out(self._rows))

    def _pairs(self) -> Pairs | None:
        return self._rows if isinstance(self._rows, Pairs) else None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        rows = self._rows
        if not len(rows):
            return iter(())
        return super().__iter__() if isinstance(rows, Pairs) else _facts(rows, self.schema, self._dictionary)


class NoFacts(GivenRelation):
    """One without facts, as most sides of what changed are: it answers without a function of Python."""

    __len__ = ().__len__
    __iter__ = ().__iter__


class Decoding:
    """How the words of a relation, `width` for each, become facts. `row`: the type of the first of them (see `_named`);
    `nothing`: the relation when it has none."""

    __slots__ = ("dictionary", "make_frame", "nothing", "row", "schema", "width")

    def __init__(self, schema: Schema, dictionary: Dictionary, make_frame: FrameMaker | None) -> None:
        self.schema = schema
        self.dictionary = dictionary
        self.make_frame = make_frame
        self.row = _row_type(schema.names)
        self.width = len(schema.names) or 1
        self.nothing = NoFacts(schema, dictionary, np.empty((0, self.width), WORD), make_frame)

    def relation_of(self, words: Rows) -> Relation:
        return GivenRelation(self.schema, self.dictionary, words, self.make_frame)


class Decodings(dict[str, Decoding]):
    """Those of some schemas, each made when it is first asked for."""

    def __init__(
        self, schemas: Mapping[str, Schema], dictionary: Dictionary, make_frame: FrameMaker | None = None
    ) -> None:
        self.schemas = schemas
        self.dictionary = dictionary
        self.make_frame = make_frame

    def __missing__(self, relation: str) -> Decoding:
        self[relation] = made = Decoding(schema_named(self.schemas, relation), self.dictionary, self.make_frame)
        return made


class ListedRelation(GivenRelation):
    """One of facts whose words are listed among others. `listed`: how they are decoded, the list, the place of the
    first word, and how many facts there are."""

    def __init__(self, listed: tuple[Decoding, array[int] | memoryview, int, int]) -> None:
        self._listed = listed  # one attribute, since each takes long to be found

    schema = property(lambda self: self._listed[0].schema)
    _dictionary = property(lambda self: self._listed[0].dictionary)
    _make_frame = property(lambda self: self._listed[0].make_frame)

    @cached_property
    def _rows(self) -> Words:  # type: ignore[override]  # nobody writes to it
        decoding, words, first, number = self._listed
        return listed_rows(words, first, number, decoding.width)

    def __len__(self) -> int:
        return self._listed[3]

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        decoding, words, first, number = self._listed
        few, row, width = decoding.dictionary.symbols.few, decoding.row, decoding.width
        if few is None or not decoding.schema.is_of_texts or number > _BLOCK:
            return _facts(self._rows, decoding.schema, decoding.dictionary)
        texts = map(few.__getitem__, words[first : first + number * width])
        if number == 1:
            return iter((row(texts),))
        facts = [*zip(*[texts] * width)]  # noqa: B905  # as many for each column
        facts[0] = row(facts[0])
        return iter(facts)


def listed_rows(listed: array[int] | memoryview, first: int, number: int, width: int) -> Words:
    """Facts whose words stand in a row, from the place `first` on: not to be written to."""
    return np.frombuffer(listed, WORD, number * width, first * listed.itemsize).reshape(number, width)
