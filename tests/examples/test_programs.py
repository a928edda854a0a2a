"""The large examples give what a program written straight from their definition gives: on the facts that come with
them, through the command line; on random facts; and after random updates."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.analysis.values import Branch
from elastalog.program import Program
from tests.commands import run
from tests.examples import contract_checker, disassembler, evm_decompiler, java_points_to, llvm_points_to

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Facts = dict[str, set[tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    name: str
    expected: Callable[[Facts], Facts]
    random_facts: Callable[[Random], Facts]
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


CASES = (
    Case("java_points_to", java_points_to.expected, java_points_to.random_facts),
    Case("disassembler", disassembler.expected, disassembler.random_facts, "functors.py"),
    Case("llvm_points_to", llvm_points_to.expected, llvm_points_to.random_facts),
    Case("contract_checker", contract_checker.expected, contract_checker.random_facts),
    Case("evm_decompiler", evm_decompiler.expected, evm_decompiler.random_facts),
)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def plain(value: Any) -> Any:
    """Values as the references have them: tuples, also for branches, whose name comes first."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, Branch):
        return (f"${value.name}", *(plain(part) for part in value.parts))
    return value


def compare(db: Any, expected: Facts) -> None:
    for name, rows in expected.items():
        found = {tuple(plain(value) for value in row) for row in db[name]}
        assert found == rows, name


@by_case
def test_outputs_are_all_compared(case: Case) -> None:
    outputs = {
        name
        for name, relation in case.program().checked.relations.items()
        if any(directive.kind == "output" for directive in relation.directives)
    }
    assert outputs == set(case.expected(case.shipped_facts()))
    assert {path.stem for path in (case.folder / "expected").glob("*.csv")} == outputs


@by_case
def test_the_facts_that_come_with_it(case: Case, tmp_path: Path) -> None:
    options = [] if case.functors is None else ["--functors", str(case.folder / case.functors)]
    arguments = [
        "run",
        str(case.folder / "program.dl"),
        "-F",
        str(case.folder / "facts"),
        "-D",
        str(tmp_path),
        *options,
    ]
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    for path in sorted((case.folder / "expected").glob("*.csv")):
        lines = sorted((tmp_path / path.name).read_text(encoding="utf-8").splitlines())
        assert lines == path.read_text(encoding="utf-8").splitlines(), path.name
    with elastalog.open(case.program(), case.shipped_facts(), **case.options()) as db:
        compare(db, case.expected(case.shipped_facts()))


@by_case
@pytest.mark.parametrize("seed", range(4))
def test_random_facts_and_updates(case: Case, seed: int) -> None:
    random = Random(seed)
    facts = case.random_facts(random)
    other = case.random_facts(random)
    with elastalog.open(case.program(), facts, **case.options()) as db:
        compare(db, case.expected(facts))
        for _ in range(3):
            with db.update() as update:
                for name, rows in facts.items():
                    gone = {row for row in sorted(rows) if random.random() < 0.15}
                    new = {row for row in sorted(other[name] - rows) if random.random() < 0.3}
                    update.delete(name, gone)
                    update.insert(name, new)
                    facts[name] = (rows - gone) | new
            compare(db, case.expected(facts))
