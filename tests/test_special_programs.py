"""Programs with choice domains, subsumption and equivalences, in `tests/programs/special`: the facts of `expected/` at
first, and what `commands.txt` prints, under every strategy and engine that admits them, fresh and from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.commands import run
from tests.reference.cases import parse_accepted, read_lines, rows
from tests.reference.evaluator import evaluate, program_of
from tests.refusals import refused

SPECIAL = Path(__file__).parent / "programs" / "special"
CHOSEN = ["choice_domains", "subsumption"]
STORED = ["elastic", "recompute"]
"""Strategies with a store. `counting` admits no recursion, and these programs have some."""
ENGINES = ["local", "gpu"]
ADMITTED = [
    *((name, strategy) for name in CHOSEN for strategy in STRATEGIES if strategy != "counting"),
    *(("equivalences", strategy) for strategy in STRATEGIES),
]


pytestmark = pytest.mark.usefixtures("compiled")


def expected_facts(name: str) -> dict[str, set[tuple[Any, ...]]]:
    schemas = program_of(tree_of(name)).schemas
    return {path.stem: rows(read_lines(path), schemas[path.stem], "\t") for path in SPECIAL.glob(f"{name}/expected/*")}


def tree_of(name: str) -> Any:
    return parse_accepted((SPECIAL / name / "program.dl").read_text(encoding="utf-8"), name)


def shell(*arguments: str, script: str) -> str:
    result = run("shell", *arguments, text=script)
    lines = [line for line in result.stderr.splitlines() if "NumPy takes its place" not in line]
    assert lines == []
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("name", [*CHOSEN, "equivalences"])
def test_the_reference_has_the_expected_facts(name: str) -> None:
    tree = tree_of(name)
    schemas = program_of(tree).schemas
    facts = {p.stem: rows(read_lines(p), schemas[p.stem], "\t") for p in SPECIAL.glob(f"{name}/facts/*")}
    found = evaluate(tree, facts)
    expected = expected_facts(name)
    assert {relation: found[relation] for relation in expected} == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "strategy"), ADMITTED)
def test_fresh(name: str, strategy: str, engine: str) -> None:
    folder = SPECIAL / name
    with elastalog.open(folder / "program.dl", folder / "facts", strategy=strategy, engine=engine) as db:
        expected = expected_facts(name)
        assert {relation: set(db[relation]) for relation in expected} == expected
    script = (folder / "commands.txt").read_text(encoding="utf-8")
    options = ("-F", str(folder / "facts"), "--strategy", strategy, "--engine", engine)
    printed = shell(str(folder / "program.dl"), *options, script=script)
    assert printed == (folder / "expected_output.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", STORED)
@pytest.mark.parametrize("name", [*CHOSEN, "equivalences"])
def test_restored_before_every_update(name: str, strategy: str, engine: str, tmp_path: Path) -> None:
    folder, store = SPECIAL / name, tmp_path / "store"
    elastalog.open(folder / "program.dl", folder / "facts", strategy=strategy, engine=engine, store=store).close()
    commands = (folder / "commands.txt").read_text(encoding="utf-8").splitlines()
    printed = "".join(shell(str(store), "--engine", engine, script=f"{command}\n") for command in commands)
    assert printed == (folder / "expected_output.txt").read_text(encoding="utf-8")
    with elastalog.open(store=store) as db:
        assert db.verify().is_exact


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize(("options", "code"), [({"strategy": "counting"}, "E0901"), ({"levels": "global"}, "E0905")])
def test_what_cannot_maintain_it_says_so_when_opened(name: str, options: dict[str, str], code: str) -> None:
    folder = SPECIAL / name
    with refused(code):
        elastalog.open(folder / "program.dl", folder / "facts", **options)
