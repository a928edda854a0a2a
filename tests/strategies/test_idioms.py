# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Programs as people write them for Soufflé under random updates: all strategies come to what evaluating anew does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.analysis.program import Base, StructuredType
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.program import Program
from elastalog.relations.schema import Column, schemas_of
from elastalog.session import Session
from tests.engine.judging import facts_of

PROGRAMS = sorted((Path(__file__).parent / "idioms").glob("*.dl"))
WAYS = [*({"strategy": name} for name in sorted(STRATEGIES)), {"strategy": "elastic", "levels": "global"}]
REFUSED = {"E0901", "E0905", "E0902"}
"""Codes of strategies and levels that do not take a program."""
DEEPEST = 2
UPDATES = 5


class Facts:
    """Random facts, with texts that the program speaks of."""

    def __init__(self, text: str, seed: int) -> None:
        self.random = Random(seed)
        self.symbols = sorted({"a", "b", "c", *re.findall(r'"(\w{1,6})"', text)})

    def rows(self, columns: tuple[Column, ...], number: int) -> list[tuple[Any, ...]]:
        return [tuple(self.column(column) for column in columns) for _ in range(number)]

    def column(self, column: Column) -> Any:
        if column.record is None:
            return self.simple(column.base)
        return self.structured(column.record.types, column.record.name, 0)

    def simple(self, base: Base) -> Any:
        if base is Base.SYMBOL:
            return self.random.choice(self.symbols)
        return self.random.randrange(5) if base is not Base.FLOAT else self.random.choice((0.5, 1.0, -2.5))

    def structured(self, types: Mapping[str, StructuredType], name: str, depth: int) -> Any:
        branches = types[name].branches
        allowed = [
            branch for branch, parts in branches.items() if depth < DEEPEST or not any(part.structure for part in parts)
        ]
        if not allowed or (branches.keys() == {"[]"} and self.random.random() < 0.1):
            return None
        branch = self.random.choice(allowed)
        parts = [
            self.simple(part.base) if part.structure is None else self.structured(types, part.structure, depth + 1)
            for part in branches[branch]
        ]
        return tuple(parts) if branch == "[]" else elastalog.Branch(branch[1:], *parts)


def opened(program: Program, facts: Mapping[str, Any], way: Mapping[str, Any]) -> Session | None:
    """A session, None if the strategy does not take the program."""
    try:
        return elastalog.open(program, facts=facts, **way)
    except ElastalogError as error:
        assert {diagnostic.code for diagnostic in error.diagnostics} <= REFUSED
        return None


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_strategy_comes_to_the_same(path: Path) -> None:
    program, made = Program.load(path), Facts(path.read_text(encoding="utf-8"), seed=1)
    schemas, checked = schemas_of(program.checked), program.checked
    told = {rule.head.relation for rule in checked.rules} | {fact.relation for fact in checked.facts}
    inputs = [name for name in schemas if name not in told]
    facts = {name: made.rows(schemas[name].columns, 8) for name in inputs}
    sessions = [db for way in WAYS if (db := opened(program, facts, way)) is not None]
    for _ in range(UPDATES):
        inserted = {name: made.rows(schemas[name].columns, 2) for name in inputs}
        known = {name: sorted(set(sessions[0].explicit(name)) - set(rows), key=repr) for name, rows in inserted.items()}
        deleted = {name: made.random.sample(rows, min(len(rows), 2)) for name, rows in known.items()}
        for db in sessions:
            db.apply(inserted, deleted)
        again = {name: list(sessions[0].explicit(name)) for name in schemas}
        with elastalog.open(program, facts=again, strategy="recompute") as fresh:
            expected = facts_of(fresh)
        for db in sessions:
            assert facts_of(db) == expected
    for db in sessions:
        assert db.verify().is_exact
        db.close()
