"""Short ways to check a text and to look at the outcome."""

from __future__ import annotations

from elastalog.analysis.check import check, flatten
from elastalog.analysis.program import CheckedProgram
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Source
from elastalog.syntax.parser import parse

EDGES = ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n"


def check_text(text: str) -> tuple[CheckedProgram | None, tuple[Diagnostic, ...]]:
    tree, found = parse(Source("test.dl", text))
    assert not [d for d in found if d.severity == "error"], found
    flat, more = flatten(tree)
    if any(d.severity == "error" for d in more):
        return None, more
    program, rest = check(flat)
    return program, (*more, *rest)


def accepted(text: str) -> CheckedProgram:
    program, found = check_text(text)
    assert program is not None, found
    return program


def only_error(text: str) -> Diagnostic:
    """The one error of a text that has exactly one."""
    program, found = check_text(text)
    errors = [d for d in found if d.severity == "error"]
    assert program is None
    assert len(errors) == 1, errors
    return errors[0]


def codes(text: str) -> list[str]:
    return [d.code for d in check_text(text)[1]]


def labelled(diagnostic: Diagnostic) -> list[tuple[str, str, bool]]:
    """The text under each label, what the label says, and whether it is primary."""
    return [
        (diagnostic.source.text[label.span.start : label.span.end], label.text, label.primary)
        for label in diagnostic.labels
    ]
