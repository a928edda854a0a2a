"""Completions. They are based on the tokens before the cursor, since the item there is rarely complete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from elastalog.analysis.functors import FUNCTORS as SIGNATURES
from elastalog.diagnostics.source import Source
from elastalog.editing.hover import ABOUT_DIRECTIVES, scope_at
from elastalog.editing.reading import Reading
from elastalog.editing.scopes import Kind, Named, Symbol, detail_of, offset_in
from elastalog.syntax import tree
from elastalog.syntax.keywords import AGGREGATES, COMPARISONS, CONSTRAINTS, DIRECTIVES, ENDS, QUALIFIERS
from elastalog.syntax.tokens import DIRECTIVE, END, NAME, Tokens, tokenize

Sort = Kind | Literal["attribute", "keyword", "directive", "type"]
_BASES: Final = ("number", "unsigned", "float", "symbol")
_PREPROCESSOR: Final = ("include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma once")
_OF_RELATIONS: Final = frozenset({".input", ".output", ".printsize", ".limitsize", ".override"})
_UNFINISHED: Final = frozenset({",", ";", ":-", ":", "=", "|", "<:", "(", "[", "{", "<", "!", "@", "$"} | COMPARISONS)


@dataclass(frozen=True, slots=True)
class Proposal:
    """`text` replaces the word at the cursor; `snippet`, if it differs, has places to fill in, `${1:x}`."""

    text: str
    sort: Sort
    detail: str = ""
    snippet: str | None = None


def complete(reading: Reading, source: Source, offset: int) -> tuple[Proposal, ...]:
    """The completions at a place in a file whose current text is `source`; the reading may be of an earlier text."""
    tokens, _ = tokenize(Source(source.name, source.text[:offset]))
    word = re.search(r"[A-Za-z0-9_?]*\Z", source.text[max(0, offset - 200) : offset])
    word_start = offset - (len(word[0]) if word else 0)
    before = source.text[source.text.rfind("\n", 0, offset) + 1 : word_start].strip()
    if _in_comment_or_string(source.text, offset):
        return ()
    if before == "#":
        return tuple(Proposal(word, "keyword") for word in _PREPROCESSOR)
    if before.endswith(".") and before.strip() == ".":
        return tuple(_directives())
    place = _Place(reading, source, tokens, word_start)
    found = {proposal.text: proposal for proposal in reversed(list(place.proposals()))}
    return tuple(reversed(found.values()))


def _in_comment_or_string(text: str, offset: int) -> bool:
    for found in re.finditer(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*(?:"|$)', text, re.DOTALL | re.MULTILINE):
        if found.start() >= offset:
            return False
        is_closed = found[0].endswith("*/") or (found[0][0] == '"' and len(found[0]) > 1 and found[0][-1] == '"')
        if offset < found.end() or (offset == found.end() and not is_closed):
            return True
    return False


def _directives() -> Iterator[Proposal]:
    for word in DIRECTIVES:
        yield Proposal(word, "directive", ABOUT_DIRECTIVES[word].replace("`", ""))
    yield Proposal("include", "directive", 'reads another file: .include "file.dl"')
    yield Proposal("once", "directive", "this file is included only once")


class _Place:
    def __init__(self, reading: Reading, source: Source, tokens: Tokens, word_start: int) -> None:
        self.reading = reading
        last = next(index for index, kind in enumerate(tokens.kinds) if kind == END)
        # The word at the cursor is what is asked for.
        while last and tokens.ends[last - 1] > word_start:
            last -= 1
        self.texts = tokens.texts[:last]
        self.kinds = tokens.kinds[:last]
        self.starts = tokens.starts[:last]
        self.text = source.text
        self.word_start = word_start
        self.item = self._item_start()
        at = offset_in(reading.source, reading.file if not source.name else source.name, word_start)
        self.scope = scope_at(reading.top, at if at is not None else -1)

    def _item_start(self) -> int:
        """The index of the token that begins the item at the cursor."""
        depth = 0
        if self._begins_line(self.text, self.word_start) and not self._goes_on(len(self.texts)):
            return len(self.texts)
        for index in range(len(self.texts) - 1, -1, -1):
            text = self.texts[index]
            if self.kinds[index] == DIRECTIVE:
                return index
            if text in (")", "}", "]"):
                depth += 1
            elif text in ("(", "{", "["):
                depth -= 1
            is_dot = text == "." and not self._qualifies(index)
            if depth <= 0 and (is_dot or (text in "{}" and self._opens_component(index))):
                return index + 1
            # Directives end in no dot: a name at the beginning of a line begins a clause.
            is_head = self.kinds[index] == NAME and self._begins_line(self.text, self.starts[index])
            if depth <= 0 and is_head and not self._goes_on(index):
                return index
        return 0

    @staticmethod
    def _begins_line(text: str, offset: int) -> bool:
        return not text[text.rfind("\n", 0, offset) + 1 : offset].strip()

    def _goes_on(self, index: int) -> bool:
        """Whether the token before this one requires something to follow."""
        return index > 0 and self.texts[index - 1] in _UNFINISHED

    def _qualifies(self, index: int) -> bool:
        """Whether a dot joins an instance and a relation instead of ending a clause: it follows a name, and nothing or
        another name follows it."""
        return (
            index > 0
            and self.kinds[index - 1] == NAME
            and (index + 1 == len(self.texts) or self.kinds[index + 1] == NAME)
        )

    def _opens_component(self, index: int) -> bool:
        for earlier in range(index - 1, -1, -1):
            if self.kinds[earlier] == DIRECTIVE:
                return self.texts[earlier] == ".comp"
            if self.texts[earlier] in (":", ":-", "."):
                return False
        return False

    # --- what the item is ------------------------------------------------------------------------------------------

    def proposals(self) -> Iterator[Proposal]:
        words = self.texts[self.item :]
        last = words[-1] if words else ""
        first = words[0] if words else ""
        if last == "@":
            yield from self.symbols(Kind.FUNCTOR)
        elif last == "$":
            yield from self.symbols(Kind.BRANCH)
        elif last == "." and len(words) > 1:
            yield from self.members(words)
        elif first in _OF_RELATIONS:
            yield from self.symbols(Kind.RELATION)
            yield from self.symbols(Kind.INSTANCE)
        elif first == ".init":
            yield from self.symbols(Kind.COMPONENT) if "<" not in words else self.types()
        elif first == ".comp" and ":" in words:
            yield from self.symbols(Kind.COMPONENT)
        elif first == ".decl":
            yield from self.declaration(words)
        elif first in (".type", ".functor"):
            yield from self.types() if last in (":", "=", "|", "<:", ",", "(") else ()
        elif first.startswith(".") and first not in (".plan", ".strict"):
            return
        else:
            yield from self.clause(words)

    def declaration(self, words: list[str]) -> Iterator[Proposal]:
        if ")" not in words:
            yield from self.types() if words[-1] == ":" else ()
        elif "choice" in words or words[-1] == "-":
            for name in re.findall(r"(\S+) :", " ".join(words)):
                yield Proposal(name, "attribute")
        else:
            yield from (Proposal(word, "keyword") for word in (*sorted(QUALIFIERS), "choice-domain"))

    def clause(self, words: list[str]) -> Iterator[Proposal]:
        yield from self.attribute(words)
        known = {
            word
            for index, word in enumerate(words)
            if self.kinds[self.item + index] == NAME and words[index + 1 : index + 2] != ["("]
        }
        yield from (Proposal(word, Kind.VARIABLE) for word in sorted(known))
        yield from self.symbols(Kind.RELATION)
        yield from self.symbols(Kind.INSTANCE)
        if ":-" in words or words[-1:] == ["("]:
            functions = {name for name in SIGNATURES if name.isidentifier()} - {"autoinc", "neg"}
            for word in sorted(functions | AGGREGATES | CONSTRAINTS | ENDS):
                detail = SIGNATURES[word].signatures[0] if word in SIGNATURES else ""
                yield Proposal(word, "keyword", detail)
            yield from (Proposal(word, "keyword") for word in ("as", "nil", "true", "false"))

    def attribute(self, words: list[str]) -> Iterator[Proposal]:
        """A variable named after the column at the cursor."""
        depth = column = 0
        for index in range(len(words) - 1, -1, -1):
            word = words[index]
            if word in (")", "]", "}"):
                depth += 1
            elif word in ("(", "[", "{") and depth:
                depth -= 1
            elif word == "," and not depth:
                column += 1
            elif word in ("[", "{"):
                return
            elif word == "(":
                name = self._qualified(words, index)
                symbol = self.scope.find(Kind.RELATION, name) if name else None
                item = symbol.item if symbol is not None else None
                if isinstance(item, tree.RelationDeclaration) and column < len(item.attributes):
                    attribute = item.attributes[column]
                    yield Proposal(attribute.name, "attribute", attribute.type_name)
                return

    def _qualified(self, words: list[str], end: int) -> str:
        start = end - 1
        while start >= 2 and words[start - 1] == ".":
            start -= 2
        return "".join(words[max(start, 0) : end])

    def members(self, words: list[str]) -> Iterator[Proposal]:
        """The relations of an instance."""
        name = self._qualified(words, len(words) - 1)
        instance = self.scope.find(Kind.INSTANCE, name)
        scope = self.scope.scope_of(instance) if instance is not None else None
        for each in scope.lineage() if scope is not None else ():
            yield from _proposals(
                symbol for (kind, _), symbol in each.symbols.items() if kind in (Kind.RELATION, Kind.INSTANCE)
            )

    def symbols(self, kind: Kind) -> Iterator[Proposal]:
        yield from _proposals(self.scope.visible(kind).values())

    def types(self) -> Iterator[Proposal]:
        yield from (Proposal(name, "type") for name in _BASES)
        yield from self.symbols(Kind.TYPE)
        yield from self.symbols(Kind.PARAMETER)


def _proposals(symbols: Iterable[Symbol]) -> Iterator[Proposal]:
    for symbol in sorted(symbols, key=lambda each: each.name):
        item = symbol.item
        detail = detail_of(item) if isinstance(item, Named) else ""
        snippet = None
        if isinstance(item, tree.RelationDeclaration) or (isinstance(item, tree.BranchDeclaration) and item.fields):
            columns = item.attributes if isinstance(item, tree.RelationDeclaration) else item.fields
            listed = ", ".join(f"${{{number}:{each.name}}}" for number, each in enumerate(columns, 1))
            snippet = f"{symbol.name}({listed})"
        yield Proposal(symbol.name, symbol.kind, detail, snippet)
