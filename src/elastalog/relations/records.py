"""Records and branches as words, without a table of their own.

A record is interned as a chain of 64-bit patterns of the wide table: each is the id of the pattern before it, in the
upper half, with the word of the next part in the lower; the first has in its upper half, below zero, the symbol that
spells the record's *shape*: `[number,symbol]`, `$A(number)`, `nil`. The word is the id of the last pattern. So equal
records have equal words, records that begin alike share memory, and whatever keeps symbols and wide numbers (a
store, a task) keeps records too.

Another value may have the same pattern, which is no harm: what a word means depends on the type of its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elastalog.analysis.program import Base, Value
from elastalog.analysis.values import NIL, Branch, Record
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


def pack_one(dictionary: Dictionary, shape: str, parts: Sequence[int]) -> int:
    """The word of one record."""
    chain = -1 - dictionary.symbols.encode_one(shape)
    for part in parts or (0,):
        chain = dictionary.wide.intern_one((chain << _HALF) | (part & _LOW))
    return chain


def find_one(dictionary: Dictionary, shape: str, parts: Sequence[int]) -> int | None:
    """The word of one record if it has one; never adds."""
    symbol = dictionary.symbols.find(shape)
    if symbol is None:
        return None
    chain = -1 - symbol
    for part in parts or (0,):
        found = dictionary.wide.find((chain << _HALF) | (part & _LOW))
        if found is None:
            return None
        chain = found
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
    records share their parts. Records may be nested deeper than Python calls go."""
    known: dict[int, Value] = {} if memory is None else memory
    pending = [word]
    while pending:
        top = pending[-1]
        if top in known:
            pending.pop()
            continue
        shape, parts = parts_of(dictionary, top)
        functor, bases = read_shape(shape)
        inner = [part for base, part in zip(bases, parts, strict=False) if base is Base.RECORD and part not in known]
        if inner:
            pending.extend(inner)
            continue
        values = [
            known[part] if base is Base.RECORD else dictionary.decode_value(base, part)
            for base, part in zip(bases, parts, strict=False)
        ]
        known[top] = _public(functor, values) if is_public else _typed(functor, Record(values, bases))
        pending.pop()
    return known[word]


def _typed(functor: str, parts: Record) -> Any:
    return NIL if functor == "nil" else parts if functor == "[]" else Branch.of(functor[1:], parts)


def _public(functor: str, parts: list[Any]) -> Any:
    return None if functor == "nil" else tuple(parts) if functor == "[]" else Branch(functor[1:], *parts)


def encode(dictionary: Dictionary, value: Any, *, may_add: bool) -> int | None:
    """The word of a record; None if it has none and none may be added. A value that is no record: ValueError."""
    known: dict[int, int] = {}
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
            word: int | None
            if base is Base.RECORD:
                word = known[id(part)]
            elif may_add:
                word = dictionary.encode_value(base, part)
            else:
                word = dictionary.find_value(base, part)
            if word is None:
                return None
            words.append(word)
        shape = NIL_SHAPE if functor == "nil" else shape_of(functor, bases)
        found = pack_one(dictionary, shape, words) if may_add else find_one(dictionary, shape, words)
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
