"""From text to syntax tree, by recursive descent that continues after errors."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.quota import look
from elastalog.diagnostics.source import Source
from elastalog.syntax.cursor import TooManyFindingsError, UnreadableItemError
from elastalog.syntax.declarations import DeclarationParser
from elastalog.syntax.tokens import DIRECTIVE, END, MOST_ERRORS, crop, tokenize
from elastalog.syntax.tree import Item, Tree


def parse(source: Source) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The tree of a program text and all findings in the order of their places. Never raises: whatever cannot be read
    is reported and left out of the tree. At most MOST_ERRORS findings are kept; a note says if there were more."""
    with without_collection():
        tokens, wrong_pieces = tokenize(source)
        parser = _ProgramParser(source, tokens)
        items = parser.program()
    diagnostics = sorted((*wrong_pieces, *parser.diagnostics), key=lambda diagnostic: diagnostic.labels[0].span)
    if len(diagnostics) > MOST_ERRORS:
        del diagnostics[MOST_ERRORS:]
        message = f"more than {MOST_ERRORS} findings: the others are not shown"
        diagnostics.append(Diagnostic("E0117", message, severity="note", source=source))
    return Tree(source, tuple(items), tuple(parser.annotated)), tuple(diagnostics)


class _ProgramParser(DeclarationParser):
    __slots__ = ()

    def program(self) -> list[Item]:
        items: list[Item] = []
        try:
            while self.kinds[self.position] != END:
                look()
                self.item(items)
        except TooManyFindingsError:
            pass
        return items

    def item(self, into: list[Item]) -> None:
        before = self.position
        self.depth = self.operators = 0
        try:
            if self.kinds[before] == DIRECTIVE:
                self.directive(into)
            elif self.texts[before] == ".":
                self.unknown_directive()
            elif self.texts[before] == "%":
                self.skip_percent_comment()
            elif self.texts[before] == ":-" or (self.texts[before] == "?" and self.texts[before + 1] == "-"):
                self.without_head()
            elif self.is_annotation(before):
                self.annotations("what it is about")
                self.annotated.append(self.span_from(before))
            else:
                self.clause(into)
        except UnreadableItemError:
            if self.position == before:
                self.position += 1  # or the same token would fail for ever
            self.skip_item()

    def without_head(self) -> None:
        """Reports `?- goal.` and `:- goal.` of other languages, with the equivalent here."""
        index = self.position
        is_question = self.texts[index] == "?"
        self.position += 2 if is_question else 1
        start = self.position
        while self.kinds[self.position] != END and self.texts[self.position] != ".":
            self.position += 1
        goal = self.source.text[self.starts[start] : self.starts[self.position]]
        goal = " ".join(re.sub(r"\\\+|\bnot\s+", "!", goal).split())
        self.position += self.texts[self.position] == "."
        self.report("E0115.question" if is_question else "E0115.denial", self.span_of(index), goal=crop(goal))


_MANY = 100_000
"""Objects of a tree that is worth it: a program of some thousand lines."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Turns off garbage collection: trees hold no cycles, and searching for them while a large tree grows doubles the
    time. Does nothing if collection is off already, so uses may nest."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            # Both only join lists: what was made counts as old, and is not searched as soon as this ends. So
            # does all else that is young, which must not happen often, or garbage is never found.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
