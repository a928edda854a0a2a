"""The large examples give the facts that belong to them: those that come with them, through the command line; drawn
ones, whose results were recorded from programs written straight from the definitions; and, after random updates, what
the reference makes of them."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.analysis.values import Branch
from elastalog.program import Program
from tests.commands import run
from tests.engine.judging import comparable, facts_of
from tests.reference import values
from tests.reference.evaluator import evaluate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Facts = dict[str, set[tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    name: str
    functors: str | None = None

    @property
    def folder(self) -> Path:
        return EXAMPLES / self.name

    def program(self) -> Program:
        return Program.load(self.folder / "program.dl")

    def options(self) -> dict[str, Any]:
        if self.functors is None:
            return {}
        space: dict[str, Any] = {}
        exec((self.folder / self.functors).read_text(encoding="utf-8"), space)
        return {"functors": {name: space[name] for name in self.program().checked.functors}}

    def shipped_facts(self) -> Facts:
        """The facts that come with the example, read here by the types of their columns."""
        facts: Facts = {}
        for name, relation in self.program().checked.relations.items():
            if any(directive.kind == "input" for directive in relation.directives):
                read = [int if a.base.value in ("number", "unsigned") else str for a in relation.attributes]
                with (self.folder / "facts" / f"{name}.facts").open(encoding="utf-8", newline="") as file:
                    rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                    facts[name] = {tuple(r(x) for r, x in zip(read, row, strict=True)) for row in rows}
        return facts

    def drawn(self) -> list[tuple[Facts, Facts]]:
        """Facts that were drawn at random, each with its outputs; the name of a branch is the first of its parts."""
        text = (Path(__file__).parent / "drawn" / f"{self.name}.json").read_text(encoding="utf-8")
        return [(recorded(facts), recorded(expected)) for facts, expected in json.loads(text)]


CASES = (
    Case("java_points_to"),
    Case("disassembler", "functors.py"),
    Case("llvm_points_to"),
    Case("contract_checker"),
    Case("evm_decompiler"),
)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def recorded(rows_of: dict[str, list[Any]]) -> Facts:
    return {name: {hashable(row) for row in rows} for name, rows in rows_of.items()}


def hashable(value: Any) -> Any:
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Values as they are recorded."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, Branch):
        return (f"${value.name}", *(plain(part) for part in value.parts))
    return value


@by_case
def test_outputs_are_all_compared(case: Case) -> None:
    outputs = {
        name
        for name, relation in case.program().checked.relations.items()
        if any(directive.kind == "output" for directive in relation.directives)
    }
    assert {path.stem for path in (case.folder / "expected").glob("*.csv")} == outputs
    assert case.drawn()
    assert all(expected.keys() == outputs for _, expected in case.drawn())


@by_case
def test_the_facts_that_come_with_it(case: Case, tmp_path: Path) -> None:
    options = [] if case.functors is None else ["--functors", case.folder / case.functors]
    result = run("run", case.folder / "program.dl", "-F", case.folder / "facts", "-D", tmp_path, *options)
    assert result.exit_code == 0, result.stderr
    for path in sorted((case.folder / "expected").glob("*.csv")):
        lines = sorted((tmp_path / path.name).read_text(encoding="utf-8").splitlines())
        assert lines == path.read_text(encoding="utf-8").splitlines(), path.name


@by_case
def test_drawn_facts(case: Case) -> None:
    for facts, expected in case.drawn():
        with elastalog.open(case.program(), facts, **case.options()) as db:
            for name, rows in expected.items():
                assert {tuple(plain(value) for value in row) for row in db[name]} == rows, name


@by_case
@pytest.mark.parametrize("seed", range(4))
def test_random_updates(case: Case, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From facts towards others, which come and go a few at a time."""
    random, program, options = Random(seed), case.program(), case.options()
    for name, function in options.get("functors", {}).items():
        monkeypatch.setitem(values.FUNCTORS, f"@{name}", function)
    facts, other = random.sample([case.shipped_facts(), *(facts for facts, _ in case.drawn())], 2)
    with elastalog.open(program, facts, **options) as db:
        for _ in range(4):
            wanted = evaluate(program.tree, facts)
            assert facts_of(db) == {name: set(map(comparable, known)) for name, known in wanted.items()}
            with db.update() as update:
                for name, rows in facts.items():
                    gone = {row for row in sorted(rows) if random.random() < 0.15}
                    new = {row for row in sorted(other[name] - rows) if random.random() < 0.3}
                    update.delete(name, gone)
                    update.insert(name, new)
                    facts[name] = (rows - gone) | new
