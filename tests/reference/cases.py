"""The cases of `tests/programs`: a folder with `program.dl`, `facts/` and `expected/`.

Fact files are read here by a few lines of their own, so that no test of the engine trusts the engine's reader. A line
is a fact, values separated by tabs (or the `delimiter` of the program); a nullary fact is the line `()`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elastalog import Branch
from elastalog.analysis.check import flatten
from elastalog.analysis.instantiate import instantiate
from elastalog.diagnostics.source import Source
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse
from tests.reference.evaluator import Facts, program_of
from tests.reference.values import as_value

PROGRAMS = Path(__file__).parent.parent / "programs"


@dataclass(frozen=True, slots=True)
class Case:
    """`expected` holds the facts of the relations that have a file in `expected/`."""

    folder: Path
    tree: syntax.Tree
    facts: Facts
    expected: Facts


def case_names() -> list[str]:
    return sorted(path.parent.name for path in PROGRAMS.glob("*/program.dl"))


def load_case(name: str) -> Case:
    folder = PROGRAMS / name
    tree = parse_accepted((folder / "program.dl").read_text(encoding="utf-8"), name)
    schemas = program_of(tree).schemas
    facts: Facts = {}
    for item in tree.items:
        if isinstance(item, syntax.Directive) and item.kind == "input":
            settings = {key: value for key, value, _ in item.parameters}
            path = folder / "facts" / settings.get("filename", f"{item.relation}.facts")
            lines = read_lines(path)[1 if settings.get("headers") == "true" else 0 :]
            facts[item.relation] = rows(lines, schemas[item.relation], settings.get("delimiter", "\t"))
    expected = {p.stem: rows(read_lines(p), schemas[p.stem], "\t") for p in sorted(folder.glob("expected/*.csv"))}
    return Case(folder, tree, facts, expected)


def parse_accepted(text: str, name: str = "program.dl") -> syntax.Tree:
    """The tree of a program without errors: what was written, with components as what their instances say."""
    tree, diagnostics = parse(Source(name, text))
    assert not [d for d in diagnostics if d.severity == "error"], diagnostics
    assert not flatten(tree)[1]
    written, diagnostics = instantiate(tree)
    assert not diagnostics, diagnostics
    return written


def read_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return text.split("\n")[: text.count("\n")]


def rows(lines: list[str], schema: list[str], delimiter: str) -> set[tuple[Any, ...]]:
    """The facts that lines stand for."""
    if not schema:
        return {()} if lines == ["()"] else set()
    read = {"number": int, "unsigned": int, "float": float, "symbol": str}
    fields = [line.split(delimiter) for line in lines]
    return {tuple(_value(v, b, read.get(b)) for v, b in zip(row, schema, strict=True)) for row in fields}


def _value(text: str, base: str, read: Any) -> Any:
    """A value as a session has it: `[1, [a, nil]]` is `(1, ("a", None))`, `$A(1)` is `Branch("A", 1)`."""
    return as_value(read(text), base) if read else _term(re.findall(r'"[^"]*"|[\[\](),]|[^\[\](),"]+', text)[::-1])


def _term(tokens: list[str]) -> Any:
    """The value at the end of a list of tokens, taken from it."""
    token = tokens.pop().strip()
    if token == "[":
        return tuple(_terms(tokens, "]"))
    if token.startswith("$"):
        has_parts = bool(tokens) and tokens[-1] == "("
        return Branch(token[1:], *(_terms(_behind(tokens), ")") if has_parts else ()))
    if token == "nil":
        return None
    return int(token) if re.fullmatch("-?[0-9]+", token) else token.strip('"')


def _behind(tokens: list[str]) -> list[str]:
    tokens.pop()
    return tokens


def _terms(tokens: list[str], end: str) -> list[Any]:
    found = []
    while tokens[-1].strip() != end:
        found.append(_term(tokens))
        if tokens[-1] == ",":
            tokens.pop()
            while not tokens[-1].strip():
                tokens.pop()
    tokens.pop()
    return found
