"""Records and branches: as words, as values that users give, and as text.

A record is interned as a chain of 64-bit patterns of the wide table, without a table of its own: each is the id of the
pattern before it, in the upper half, with the word of the next part in the lower; the first has in its upper half,
below zero, the symbol that spells the record's *shape*: `[number,symbol]`, `$A(number)`, `nil`. The word is the id of
the last pattern. So equal records have equal words, records that begin alike share memory, and whatever keeps symbols
and wide numbers (a store, a task) keeps records too. Another value may have the same pattern, which is no harm: what a
word means depends on the type of its column.

Text is as facts files hold it: `[1, [2, nil]]`, `$A(1, "x")`. In text that is read a symbol may stand in quotes, with
escapes as in JSON, or bare: then it ends at a comma or a closing bracket. In text that is written it always stands in
quotes inside a record, so that what is written can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.analysis.program import Base, Part, StructuredType, Value
from elastalog.analysis.values import NIL, Branch, Record, bare_text, plain_text
from elastalog.late import dataclass
from elastalog.relations.arrays import ARROW_TYPES
from elastalog.relations.limits import Integers, Words

if TYPE_CHECKING:
    from elastalog.relations.words import Dictionary

_HALF = 32
_LOW = (1 << _HALF) - 1

NIL_SHAPE = "nil"


def shape_of(functor: str, bases: Sequence[Base]) -> str:
    """The text of a shape: a constructor, `[]` or `$A`, and the base types of its parts."""
    parts = ",".join(base.value for base in bases)
    return f"[{parts}]" if functor == "[]" else f"{functor}({parts})"


def read_shape(text: str) -> tuple[str, tuple[Base, ...]]:
    """The constructor (`nil` for nil) and the base types of the parts."""
    if text == NIL_SHAPE:
        return "nil", ()
    functor, _, parts = ("[]", "", text[1:]) if text.startswith("[") else text.partition("(")
    return functor, tuple(Base(part) for part in parts[:-1].split(",") if part)


def pack(dictionary: Dictionary, shape: int, parts: Sequence[Words], count: int) -> Words:
    """The words of records of one shape, given as its symbol, from the words of their parts; new ones are added."""
    links = np.zeros((max(len(parts), 1), count), np.int32)
    for link, words_of_parts in enumerate(parts):
        links[link] = words_of_parts
    words, absent = dictionary.wide.find_chains(-1 - shape, links)
    if absent:
        is_absent = words < 0
        chain: Integers = np.full(absent, -1 - shape, np.int64)
        for part in links[:, is_absent]:
            chain = dictionary.wide.intern((chain << _HALF) | (part.astype(np.int64) & _LOW)).astype(np.int64)
        words[is_absent] = chain
    return words


def unpack(dictionary: Dictionary, words: Words, shape: int, arity: int) -> tuple[list[Words], NDArray[np.bool_]]:
    """The words of the parts of records, and which records are of the shape; the parts of others mean nothing."""
    parts, ends = dictionary.wide.follow_chains(words, max(arity, 1))
    return list(parts[:arity]), ends == -1 - shape


def word_of(dictionary: Dictionary, shape: str, parts: Sequence[int], *, may_add: bool) -> int | None:
    """The word of one record; None if it has none and none may be added."""
    symbols, wide = dictionary.symbols, dictionary.wide
    symbol = symbols.encode_one(shape) if may_add else symbols.find(shape)
    chain = None if symbol is None else -1 - symbol
    for part in parts or (0,):
        if chain is None:
            return None
        pattern = (chain << _HALF) | (part & _LOW)
        chain = wide.intern_one(pattern) if may_add else wide.find(pattern)
    return chain


def parts_of(dictionary: Dictionary, word: int) -> tuple[str, list[int]]:
    """The shape of one record and the words of its parts."""
    parts: list[int] = []
    chain = word
    while chain >= 0:
        pattern = dictionary.wide.pattern(chain)
        part = pattern & _LOW
        parts.append(part - (1 << _HALF) if part >> (_HALF - 1) else part)
        chain = pattern >> _HALF
    parts.reverse()
    return dictionary.symbols.text(-1 - chain), parts


def decode(
    dictionary: Dictionary, word: int, memory: dict[int, Value] | None = None, *, is_public: bool = False
) -> Value:
    """The value of a record's word; `is_public`: as `public_value` has it. `memory`: those decoded before, since
    records share their parts."""
    known: dict[int, Value] = {} if memory is None else memory
    for each, shape, parts in inner_first(dictionary, word, known.__contains__):
        functor, bases = read_shape(shape)
        values = [known[part] if base is Base.RECORD else dictionary.decode_value(base, part) for base, part in parts]
        known[each] = _built(functor, values, bases, is_public)
    return known[word]


def inner_first(
    dictionary: Dictionary, word: int, is_known: Callable[[int], bool]
) -> Iterator[tuple[int, str, list[tuple[Base, int]]]]:
    """A record, and before it those inside of it: the word of each that is not known by then, its shape, and the types
    and words of its parts. Records may be nested deeper than Python calls go."""
    pending = [word]
    while pending:
        if is_known(top := pending[-1]):
            pending.pop()
            continue
        shape, words = parts_of(dictionary, top)
        parts = list(zip(read_shape(shape)[1], words, strict=False))
        inner = [part for base, part in parts if base is Base.RECORD and not is_known(part)]
        pending.extend(inner)
        if not inner:
            yield pending.pop(), shape, parts


def _built(functor: str, parts: list[Any], bases: tuple[Base, ...], is_public: bool) -> Any:
    if functor == "nil":
        return None if is_public else NIL
    if is_public:
        return tuple(parts) if functor == "[]" else Branch(functor[1:], *parts)
    record = Record(parts, bases)
    return record if functor == "[]" else Branch.of(functor[1:], record)


def encode(dictionary: Dictionary, value: Any, *, may_add: bool) -> int | None:
    """The word of a record; None if it has none and none may be added. A value that is no record: ValueError."""
    known: dict[int, int] = {}
    part_word: Callable[[Base, Any], int | None] = dictionary.encode_value if may_add else dictionary.find_value
    pending = [value]
    while pending:
        top = pending[-1]
        functor, parts = _constructor(top)
        inner = [part for part in parts if _is_structured(part) and id(part) not in known]
        if inner:
            pending.extend(inner)
            continue
        pending.pop()
        words: list[int] = []
        bases = parts.bases if isinstance(parts, Record) else tuple(map(_guessed_base, parts))
        for part, base in zip(parts, bases, strict=True):
            word = known[id(part)] if base is Base.RECORD else part_word(base, part)
            if word is None:
                return None
            words.append(word)
        shape = NIL_SHAPE if functor == "nil" else shape_of(functor, bases)
        found = word_of(dictionary, shape, words, may_add=may_add)
        if found is None:
            return None
        known[id(top)] = found
    return known[id(value)]


def _is_structured(value: Any) -> bool:
    return value is None or value is NIL or isinstance(value, tuple | Branch)


def _constructor(value: Any) -> tuple[str, tuple[Any, ...]]:
    if value is None or value is NIL:
        return "nil", ()
    if isinstance(value, Branch):
        return f"${value.name}", value.parts
    if isinstance(value, tuple):
        return "[]", value
    raise ValueError(f"{value!r} is not a record")


def _guessed_base(value: Any) -> Base:
    """The base type of a part that nothing says."""
    if _is_structured(value):
        return Base.RECORD
    if isinstance(value, str):
        return Base.SYMBOL
    return Base.FLOAT if isinstance(value, float) else Base.NUMBER


MOST_NESTED = 200
"""How deep values of users may be nested: each level takes a Python call."""


class NotOfType(Exception):
    """A value is not of a type; the text says why."""


@dataclass(frozen=True, slots=True)
class RecordType:
    """The declared type of a column, with the others that its parts may have."""

    name: str
    types: Mapping[str, StructuredType]

    def typed(self, given: Any) -> Value:
        """A value of the type from a tuple, list, mapping by field name, `None`, `Branch` or text as the language
        writes it. Raises NotOfType."""
        return self._typed(self.types[self.name], given, 0)

    def _typed(self, wanted: StructuredType, given: Any, depth: int) -> Value:
        if depth > MOST_NESTED:
            raise NotOfType(f"nested deeper than {MOST_NESTED}")
        if isinstance(given, str):
            try:
                given = read_value(given)
            except NotWritten as fault:
                raise NotOfType(str(fault)) from None
        if given is None or given is NIL:
            if "[]" not in wanted.branches:
                raise NotOfType(f"nil is not of type `{wanted.name}`")
            return NIL
        if isinstance(given, Branch):
            fields = wanted.branches.get(f"${given.name}")
            if fields is None:
                raise NotOfType(f"`${given.name}` is no branch of `{wanted.name}`")
            return Branch.of(given.name, self._parts(f"${given.name}", fields, given.parts, depth))
        fields = wanted.branches.get("[]")
        if fields is None or not isinstance(given, tuple | list | Mapping):
            raise NotOfType(f"{type(given).__name__} is not of type `{wanted.name}`")
        if isinstance(given, Mapping):
            if set(given) != {field.name for field in fields}:
                raise NotOfType(f"the fields of `{wanted.name}` are {', '.join(field.name for field in fields)}")
            given = [given[field.name] for field in fields]
        return self._parts(wanted.name, fields, given, depth)

    def _parts(self, owner: str, fields: tuple[Part, ...], given: Sequence[Any], depth: int) -> Record:
        if len(fields) != len(given):
            raise NotOfType(f"`{owner}` has {len(fields)} field{'' if len(fields) == 1 else 's'}, not {len(given)}")
        return Record(
            [self._part(field, value, depth) for field, value in zip(fields, given, strict=True)],
            tuple([field.base for field in fields]),
        )

    def _part(self, field: Part, given: Any, depth: int) -> Value:
        from elastalog.relations.rows import plain_value, value_fault
        from elastalog.relations.schema import Column

        if field.structure is not None:
            return self._typed(self.types[field.structure], given, depth + 1)
        if isinstance(given, Bare):
            given = str(given) if field.base is Base.SYMBOL else number_in(given, field.base is Base.FLOAT)
        fault = value_fault(Column(field.name, field.base), given)
        if fault is not None:
            raise NotOfType(fault.reason)
        return plain_value(field.base, given)

    @property
    def arrow(self) -> pa.DataType:
        """A struct for a record whose parts are not records that lead back to it; otherwise text."""
        found = self._arrow(self.name, ())
        return pa.string() if found is None else found

    def _arrow(self, name: str, around: tuple[str, ...]) -> pa.DataType | None:
        wanted = self.types[name]
        fields = wanted.branches.get("[]")
        if fields is None or wanted.name in around:
            return None
        parts = []
        for field in fields:
            if field.structure is None:
                kind: pa.DataType | None = ARROW_TYPES[field.base]
            else:
                kind = self._arrow(field.structure, (*around, wanted.name))
            if kind is None:
                return None
            parts.append(pa.field(field.name, kind))
        return pa.struct(parts)


def as_struct(value: Any, fields: pa.StructType) -> dict[str, Any] | None:
    """A record as Arrow takes a struct."""
    if value is NIL:
        return None
    return {
        field.name: as_struct(part, field.type) if pa.types.is_struct(field.type) else part
        for field, part in zip(fields, value, strict=True)
    }


def record_texts(record: RecordType, array: pa.ChunkedArray, is_bare: bool = False) -> pa.ChunkedArray:
    """A column of records as the text of files; `is_bare`: without quotes around texts, whatever they are."""
    spell = bare_text if is_bare else plain_text
    # A text is not read, but for what it quotes: a list that rules have made is as deep as it is long.
    texts = [
        _QUOTED.sub(lambda found: spell(json.loads(found[0], strict=False)), value)
        if isinstance(value, str)
        else spell(record.typed(value))
        for value in array.to_pylist()
    ]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*")|([\[\](),])|([^\[\](),"\s][^\[\](),"]*))""", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+\.|[+-]?inf|nan", re.IGNORECASE)


class NotWritten(Exception):
    """A text does not spell a record; says why."""


MOST_DIGITS = 300
"""Longer whole numbers are none of any type."""


class Bare(str):
    """A text without quotes: a number, or a symbol, as the type of its place says."""

    __slots__ = ()


def read_value(text: str) -> Any:
    """The value that a text spells: tuples, `NIL`, branches; parts without quotes stay `Bare`."""
    reader = _Reader(text)
    value = reader.value(0)
    if reader.next() is not None:
        raise NotWritten("there is more text behind the value")
    if isinstance(value, str):
        raise NotWritten("not a record: write `[…]`, `nil` or `$A(…)`")
    return value


def number_in(text: str, is_float: bool) -> int | float | str:
    """A bare part as the number it spells, if it does; a whole one is a float where one is expected."""
    if _NUMBER.fullmatch(text):
        if len(text) > MOST_DIGITS:
            return text
        return float(text) if is_float else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def next(self) -> str | None:
        """The next token, gone over; None at the end."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            if self.text[self.position :].strip():
                raise NotWritten(f"unexpected {self.text[self.position :][:20]!r}")
            return None
        self.position = found.end()
        return found.group(1) or found.group(2) or found.group(3).rstrip()

    def value(self, depth: int) -> Any:
        if depth > MOST_NESTED:
            raise NotWritten(f"nested deeper than {MOST_NESTED}")
        token = self.next()
        if token is None:
            raise NotWritten("the text ends too early")
        if token == "[":
            return tuple(self.parts("]", depth))
        if token[0] == '"':
            try:
                return str(json.loads(token, strict=False))
            except ValueError:
                raise NotWritten(f"{token[:20]} is not a text in quotes") from None
        if token == "nil":
            return NIL
        if token[0] == "$":
            before = self.position
            if self.next() == "(":
                return Branch(token[1:], *self.parts(")", depth))
            self.position = before
            return Branch(token[1:])
        if token in "](),":
            raise NotWritten(f"unexpected `{token}`")
        return Bare(token)

    def parts(self, closing: str, depth: int) -> list[Any]:
        before = self.position
        if self.next() == closing:
            return []
        self.position = before
        found = []
        while True:
            found.append(self.value(depth + 1))
            token = self.next()
            if token == closing:
                return found
            if token != ",":
                raise NotWritten(f"expected `,` or `{closing}`")
