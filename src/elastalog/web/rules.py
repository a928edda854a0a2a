"""Checks programs and rules that arrive over the network: they may define rules, but not what is read, written or
run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding
from elastalog.diagnostics.source import Source, Span
from elastalog.program import Program
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Component, Directive, FunctorDeclaration, Item, Pragma

GIVEN = "<given>"
"""The name of such a text in diagnostics."""

_PREPROCESSED: Final = re.compile(r"^[ \t]*(\#|\.include\b|\.once\b)[^\n]*", re.MULTILINE)


def check_text(text: str, known: Program) -> tuple[Diagnostic, ...]:
    """The diagnostics of a program that is to replace a known one."""
    try:
        return read_text(text, known).warnings
    except ElastalogError as error:
        return error.diagnostics


def read_text(text: str, known: Program) -> Program:
    """A program that is to replace a known one; of directives, functors and pragmas it may have only those of the known
    one. Raises ElastalogError with every diagnostic."""
    allowed = frozenset(print_item(item) for item in _dangerous(known.tree.items))
    _refuse(Source(GIVEN, text), allowed)
    return Program.parse(text, GIVEN, preprocess=False)


def refuse_in_rules(texts: Iterable[str]) -> None:
    """Raises ElastalogError if rules contain anything that a client may not define."""
    for text in texts:
        _refuse(Source(GIVEN, text), frozenset())


def _refuse(source: Source, allowed: frozenset[str]) -> None:
    found = [_refused(source, Span(*line.span()), line[1].strip()) for line in _PREPROCESSED.finditer(source.text)]
    written = [item for item in _dangerous(parse(source)[0].items) if print_item(item) not in allowed]
    found += [_refused(source, item.span, _called(item)) for item in written]
    if found:
        raise ElastalogError(found)


def _dangerous(items: Iterable[Item]) -> Iterator[Directive | Pragma | FunctorDeclaration]:
    for item in items:
        match item:
            case FunctorDeclaration() | Pragma():
                yield item
            case Directive() if item.kind in ("input", "output") and item.parameters:
                if [parameter[:2] for parameter in item.parameters] != [("IO", "updates")]:  # which reads nothing
                    yield item
            case Component():
                yield from _dangerous(item.items)
            case _:
                pass


def _called(item: Directive | Pragma | FunctorDeclaration) -> str:
    match item:
        case Directive():
            return f".{item.kind}"
        case Pragma():
            return ".pragma"
        case FunctorDeclaration():
            return ".functor"


def _refused(source: Source, span: Span, what: str) -> Diagnostic:
    return finding("E0927", span, source=source, what=what)
