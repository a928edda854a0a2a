"""Facts that somebody pastes: lines of values, or JSON. What they say of their relation is worked out from them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.syntax.keywords import RESERVED

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DELIMITERS = "\t,;|"
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Pasted:
    """Facts of a relation, the names of their columns, and for each column the type that all its values have."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def declaration(self, relation: str) -> str:
        """How a program declares their relation."""
        columns = ", ".join(f"{name}: {kind}" for name, kind in zip(self.columns, self.types, strict=True))
        return f".decl {relation}({columns})"


def read_pasted(text: str, has_header: bool | None = None) -> Pasted:
    """What a text holds. `has_header`: whether its first line names the columns; None where the text is to tell. Raises
    ElastalogError."""
    names, rows = _json(text) if text.lstrip()[:1] in ("[", "{") else _lines(text, has_header)
    if not rows:
        raise _unreadable("there are no facts in it")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(number for number, row in enumerate(rows, 1) if len(row) != len(rows[0]))
        told = f"fact {odd} has {len(rows[odd - 1])} values, and the first has {len(rows[0])}"
        raise _unreadable(told)
    columns = tuple(_column(name, i) for i, name in enumerate(names or [""] * len(rows[0])))
    made = [_typed([row[i] for row in rows]) for i in range(len(columns))]
    values = tuple(zip(*(column for _, column in made), strict=True))
    return Pasted(columns, tuple(kind for kind, _ in made), values)


def _lines(text: str, has_header: bool | None) -> tuple[Sequence[str], list[Sequence[Any]]]:
    lines = [line for line in text.splitlines() if line.strip()]

    def often(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines[:50]]
        return min(counts, default=0), sum(counts)

    delimiter = max(_DELIMITERS, key=often)
    rows: list[Sequence[Any]] = [[value.strip() for value in row] for row in csv.reader(lines, delimiter=delimiter)]
    if has_header is None:
        has_header = len(rows) > 1 and _is_header(rows)
    return (rows[0], rows[1:]) if has_header and rows else ((), rows)


def _is_header(rows: list[Sequence[Any]]) -> bool:
    """Whether a first line looks like names: all are, and where the others have numbers it has none."""
    first, others = rows[0], rows[1:]
    if not all(_NAME.fullmatch(name) for name in first) or len(set(first)) < len(first):
        return False
    kinds = [_typed([row[i] for row in others if i < len(row)])[0] for i in range(len(first))]
    return any(kind != "symbol" for kind in kinds)


def _json(text: str) -> tuple[Sequence[str], list[Sequence[Any]]]:
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise _unreadable(f"it is no JSON: {error}") from None
    facts = found if isinstance(found, list) else [found]
    if all(isinstance(fact, dict) for fact in facts):
        names = list(dict.fromkeys(name for fact in facts for name in fact))
        for number, fact in enumerate(facts, 1):
            if len(fact) < len(names):
                lacking = next(name for name in names if name not in fact)
                raise _unreadable(f"fact {number} has no `{lacking}`")
        return names, [[fact[name] for name in names] for fact in facts]
    return (), [fact if isinstance(fact, list) else [fact] for fact in facts]


def _column(name: str, number: int) -> str:
    plain = re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_")
    if not plain or not _NAME.fullmatch(plain):
        plain = f"c{number + 1}" if not plain else f"c_{plain}"
    return f"{plain}_" if plain in RESERVED else plain


def _typed(values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The narrowest type that all values of a column have, and the values in it."""
    kinds: tuple[tuple[str, Callable[[Any], Any]], ...] = (("number", _whole), ("float", _real))
    for kind, convert in kinds:
        try:
            return kind, [convert(value) for value in values]
        except ValueError:
            continue
    return "symbol", [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)", value):  # 007 is a name
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        raise ValueError
    return value


def _real(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


def _unreadable(why: str) -> ElastalogError:
    advice = "give lines of values between commas, semicolons or tabs, or JSON: a list of objects or of lists"
    return ElastalogError([Diagnostic("E0956", f"these facts cannot be read: {why}", help=advice)])
