"""Terms of RDF as texts in the form of N-Triples, and what the functors of RDF compute of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^<>]*)>)?', re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CONTROLS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {
    **{code: f"\\u{code:04X}" for code in (*range(32), 127)},
    **{ord(plain): f"\\{letter}" for letter, plain in (*_CONTROLS.items(), ("\\", "\\"), ('"', '"'))},
}
"""What stands for characters in literals of N-Triples, as its canonical form has it."""
_INTEGERS = frozenset((
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
))  # fmt: skip


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _CONTROLS.get(found[3], found[3])


def rdf_value(term: str) -> str | None:
    """The text of a literal, the IRI of an IRI. Literals of numbers, truth values and times that mean the same have the
    same text."""
    if term[:1] == "<" and term[-1:] == ">":
        return term[1:-1]
    found = _LITERAL.fullmatch(term)
    if found is None:
        return None
    text = _ESCAPED.sub(_unescaped, found[1])
    kind = (found[3] or "").removeprefix(_XSD)
    if kind == "boolean":
        return {"1": "true", "0": "false"}.get(text, text)
    try:
        if kind in _INTEGERS or kind == "decimal":
            return _without_zeros(Decimal(text)) if _DECIMAL.fullmatch(text) else text
        if kind in ("double", "float"):
            return repr(float(text)) if _DOUBLE.fullmatch(text) else text
        if kind == "dateTime" and (moment := datetime.fromisoformat(text.replace("Z", "+00:00"))).tzinfo is not None:
            return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    except (ValueError, ArithmeticError):  # one that no number or time here can have
        pass
    return text


def _without_zeros(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def rdf_language(term: str) -> str | None:
    """The language of a literal, in small letters; nothing if it has none."""
    found = _LITERAL.fullmatch(term)
    return None if found is None else (found[2] or "").lower()


def rdf_datatype(term: str) -> str | None:
    """The datatype of a literal, as an IRI in angle brackets."""
    found = _LITERAL.fullmatch(term)
    if found is None:
        return None
    own = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString" if found[2] else f"{_XSD}string"
    return f"<{found[3] or own}>"


def literal_of(term: str) -> tuple[str, str, str] | None:
    """The text of a literal as it is written, its language and the IRI of its datatype, each empty if it has none."""
    found = _LITERAL.fullmatch(term)
    return None if found is None else (_ESCAPED.sub(_unescaped, found[1]), found[2] or "", found[3] or "")


def literal_text(text: str, language: str = "", datatype: str = "") -> str:
    """A literal in the form of N-Triples."""
    kind = f"@{language}" if language else f"^^<{datatype}>" if datatype and datatype != f"{_XSD}string" else ""
    return f'"{text.translate(_WRITTEN)}"{kind}'
