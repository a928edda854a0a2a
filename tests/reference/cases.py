"""The cases of `tests/programs`: a folder with `program.dl`, `facts/` and `expected/`.

Fact files are read here by a few lines of their own, so that no test of the engine trusts the engine's reader. A line
is a fact, values separated by tabs (or the `delimiter` of the program); a nullary fact is the line `()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elastalog.analysis.flatten import flatten
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
    """The tree of a program without errors."""
    tree, diagnostics = parse(Source(name, text))
    assert not [d for d in diagnostics if d.severity == "error"], diagnostics
    flat, diagnostics = flatten(tree)
    assert not diagnostics, diagnostics
    return flat


def read_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return text.split("\n")[: text.count("\n")]


def rows(lines: list[str], schema: list[str], delimiter: str) -> set[tuple[Any, ...]]:
    """The facts that lines stand for."""
    if not schema:
        return {()} if lines == ["()"] else set()
    read = {"number": int, "unsigned": int, "float": float, "symbol": str}
    fields = [line.split(delimiter) for line in lines]
    return {tuple(as_value(read[b](v), b) for v, b in zip(row, schema, strict=True)) for row in fields}
