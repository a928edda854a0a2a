"""From text to tokens. Never fails: what is not a token becomes a diagnostic, and the rest continues.

Tokens are parallel lists instead of objects, and are cut and classified by operations on the whole text: the speed of
parsing depends on it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, compress
from operator import add
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, finding
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass
from elastalog.syntax.keywords import DIRECTIVES, RESERVED

MOST_ERRORS = 50

# TRIVIA is 0 so that the kinds themselves select the tokens that count.
TRIVIA, NAME, WILDCARD, INTEGER, FLOAT, STRING, KEYWORD, DIRECTIVE, SYMBOL, END = range(10)
# Pieces that are wrong; they are reported and turned into one of the kinds above.
_FIRST_WRONG = 10
_OPEN_STRING, _OPEN_COMMENT, _BAD_NUMBER, _QUOTED, _PREPROCESSOR, _STRAY = range(_FIRST_WRONG, _FIRST_WRONG + 6)

KIND_NAMES = ("trivia", "name", "wildcard", "integer", "float", "string", "keyword", "directive", "symbol", "end")

_DIRECTIVES = "|".join(DIRECTIVES)
# Every character of any text belongs to exactly one word, or to the blanks behind it. What repeats is possessive:
# otherwise a place to go back to is kept for every repetition, which takes a hundred times the memory of a long string.
_BLANKS = " \t\r\n\f\v"
_BLANK = rf"[{_BLANKS}]"
_WORDS = rf"""
      [A-Za-z_?][A-Za-z0-9_?]*+
    | [(),]
    | //[^\n]*
    | /\*.*?\*/
    | /\*.*
    | \.(?:{_DIRECTIVES})(?![A-Za-z0-9_?(.])
    | :-|:=|<=|>=|!=|<:|<>|==|=>|=<|&&|\|\||\\\+|\\=
    | [.;:=<>!+\-*/%^|$@{{}}\[\]~&]
    | [0-9]+(?:\.[0-9]+)*(?:[eE][+-]?[0-9]+)?[A-Za-z0-9_]*
    | "(?:[^"\\\n]++|\\[^\n])*+(?:"|\\)?
    | '[^'\n]*'
    | \#(?:[^\n\\]++|\\\r?\n|\\)*+
    | {_BLANK}+
    | \\\r?\n
    | (?:[^\x00-\x7f\W]+[A-Za-z0-9_?]*)+
    | [^\x00-\x7f\w]+
    | .
    """
_WORD = re.compile(_WORDS, re.VERBOSE | re.DOTALL)
_PIECE = re.compile(f"(?:{_WORDS}){_BLANK}*+", re.VERBOSE | re.DOTALL)
_INTEGER = re.compile(r"[0-9]+u?|0x[0-9a-fA-F]+u?|0b[01]+u?")
_ADDRESS = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_FLOAT = re.compile(r"[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_WIDEST = 40
_NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_?")
_SYMBOLS = frozenset(
    [":-", ":=", "<=", ">=", "!=", "<:", "<>", "==", "=>", "=<", "&&", "||", "\\+", "\\="]
) | frozenset("(),.;:=<>!+-*/%^|$@{}[]~&")


def _classify(piece: str) -> int:
    first = piece[0]
    if first in _NAME_START:
        return WILDCARD if piece == "_" else KEYWORD if piece in RESERVED else NAME
    if first in _BLANKS or piece.startswith("//") or (first == "\\" and piece[-1] == "\n"):
        return TRIVIA
    if piece in _SYMBOLS:
        return SYMBOL
    if first == ".":
        return DIRECTIVE
    if first in "0123456789":
        return _classify_number(piece)
    if first == '"':
        return STRING if len(piece) > 1 and _STRING.fullmatch(piece) else _OPEN_STRING
    if piece.startswith("/*"):
        return TRIVIA if len(piece) >= 4 and piece.endswith("*/") else _OPEN_COMMENT
    if first == "#":
        return _PREPROCESSOR
    return _QUOTED if first == "'" and len(piece) > 1 else _STRAY


def _classify_number(piece: str) -> int:
    if _INTEGER.fullmatch(piece):
        return INTEGER
    if _FLOAT.fullmatch(piece):
        return FLOAT
    address = _ADDRESS.fullmatch(piece)
    return INTEGER if address and all(int(part) < 256 for part in address.groups()) else _BAD_NUMBER


class _Kinds(dict[str, int]):
    """The kind of each distinct word, found only once."""

    def __missing__(self, word: str) -> int:
        kind = self[word] = _classify(word)
        return kind


class _Words(dict[str, str]):
    """The word of each distinct piece. It is always the same object, which makes later lookups faster."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def __missing__(self, piece: str) -> str:
        found = _WORD.match(piece) if piece[-1] in _BLANKS else None
        word = piece if found is None else found[0]
        word = self[piece] = self.known.setdefault(word, word)
        return word


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token `i` is `texts[i]`, of kind `kinds[i]`, at `starts[i]` to `ends[i]`. The last three are END tokens with
    empty text, so that two tokens can always be looked at ahead."""

    texts: list[str]
    kinds: list[int]
    starts: list[int]
    ends: list[int]

    def __iter__(self) -> Iterator[tuple[str, str, Span]]:
        """The name of the kind, the text and the span of each token, without the END tokens."""
        for kind, text, start, end in zip(self.kinds, self.texts, self.starts, self.ends, strict=True):
            if kind != END:
                yield KIND_NAMES[kind], text, Span(start, end)


def tokenize(source: Source) -> tuple[Tokens, tuple[Diagnostic, ...]]:
    """All tokens of a text, and what is wrong with the rest: about MOST_ERRORS diagnostics at most, in the order of
    their places."""
    text = source.text
    pieces = _PIECE.findall(text)
    if pieces and pieces[0].startswith("\ufeff"):
        # A byte order mark is not part of the program, but offsets count it.
        pieces[:1] = [" ", pieces[0][1:]] if len(pieces[0]) > 1 else [" "]
    kind_of = _Kinds()
    words = list(map(_Words().__getitem__, pieces))
    kinds = list(map(kind_of.__getitem__, words))
    starts = list(accumulate(map(len, pieces), initial=0))
    length = starts.pop()
    ends = list(map(add, starts, map(len, words)))
    diagnostics: list[Diagnostic] = []
    if not text.isascii() or any(kind >= _FIRST_WRONG for kind in kind_of.values()):
        diagnostics = _repair(source, words, kinds, starts, ends)
    if diagnostics or TRIVIA in kind_of.values():
        lists: tuple[list[Any], ...] = (words, starts, ends, kinds)  # the kinds themselves last: they select
        for values in lists:
            values[:] = compress(values, kinds)
    words += ["", "", ""]
    kinds += [END, END, END]
    for places in (starts, ends):
        places += [length, length, length]
    return Tokens(words, kinds, starts, ends), tuple(diagnostics)


def _repair(source: Source, words: list[str], kinds: list[int], starts: list[int], ends: list[int]) -> list[Diagnostic]:
    """Reports what is wrong, and replaces it by the word and kind that suit the parser best."""
    diagnostics: list[Diagnostic] = []
    for index, kind in enumerate(kinds):
        word = words[index]
        if kind < _FIRST_WRONG and (kind not in (STRING, TRIVIA) or word.isascii()):
            continue
        if len(diagnostics) <= MOST_ERRORS:
            span = Span(starts[index], ends[index])
            if kind >= _FIRST_WRONG:
                diagnostics.append(_report(source, kind, word, span))
            elif found := _BIDI.search(word):
                diagnostics.append(_bidi(source, span.start, found, kind == STRING))
        if kind >= _FIRST_WRONG:
            is_behind = index > 0 and ends[index - 1] == starts[index]
            is_in_name = is_behind and kinds[index - 1] in (NAME, KEYWORD)
            kinds[index], words[index] = _replacement(kind, word, is_in_name)
    return diagnostics


def _replacement(kind: int, piece: str, is_in_name: bool) -> tuple[int, str]:
    """The kind and text of the token that replaces a wrong piece."""
    if kind == _OPEN_STRING:
        return STRING, piece.rstrip("\\\r") + '"'
    if kind == _BAD_NUMBER:
        return INTEGER, "0"
    if kind == _QUOTED:
        return STRING, '"' + piece[1:-1].replace("\\", "\\\\").replace('"', '\\"') + '"'
    # A name in foreign letters stays a name: one error is enough.
    return (NAME if piece[0].isalpha() and not is_in_name else TRIVIA), piece


def _report(source: Source, kind: int, piece: str, span: Span) -> Diagnostic:
    if kind == _OPEN_STRING:
        return finding("E0102", span, source=source)
    if kind == _OPEN_COMMENT:
        return finding("E0103", Span(span.start, span.start + 2), source=source)
    if kind == _BAD_NUMBER:
        return finding("E0104", span, source=source, number=crop(piece))
    if kind == _QUOTED:
        return finding("E0101.quotes", span, source=source)
    if kind == _PREPROCESSOR:
        word = piece[1:].split(maxsplit=1)
        place = Span(span.start, span.start + len(piece.rstrip()))
        return finding("E0197", place, source=source, word=crop(word[0]) if word else "")
    found = _BIDI.search(piece)
    if found:
        return _bidi(source, span.start, found, False)
    what = f"character {name_character(piece[0])}" if len(piece) == 1 else "characters"
    return finding("E0101", span, source=source, what=what)


def _bidi(source: Source, offset: int, marks: re.Match[str], in_string: bool) -> Diagnostic:
    return finding(
        "E0107", Span(offset + marks.start(), offset + marks.end()),
        source=source, severity="warning" if in_string else "error", mark=name_character(marks[0][0]),
        advice="remove it, unless the value is meant to hold it" if in_string else "remove it",
    )  # fmt: skip


def name_character(character: str) -> str:
    """A character in the form that messages show: itself if it is visible, otherwise its number and name."""
    if "!" <= character <= "~":
        return f"`{character}`"
    name = unicodedata.name(character, {"\x00": "NULL"}.get(character, ""))
    return f"U+{ord(character):04X}{' ' + name if name else ''}"


def crop(text: str) -> str:
    """A text of the program in the form that messages show, cut if it is very long."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
