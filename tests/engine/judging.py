"""A session beside the judges: its facts, levels and counts in the form in which `tests/reference` gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest

import elastalog
from elastalog import Branch
from elastalog.session import Session
from elastalog.settings import SETTINGS
from elastalog.syntax.tree import Tree
from tests.generators.construction import GeneratedProgram, written
from tests.generators.updates import Update
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.reference.levels import Levels, levels
from tests.reference.values import made

Facts = dict[str, set[tuple[Any, ...]]]
Kind = Literal["local", "global"]
PYTHON_TYPES = {"number": int, "unsigned": int, "float": float, "symbol": str, "record": tuple | None | Branch}

LEVEL_KINDS: tuple[Kind, ...] = ("local", "global")


def comparable(fact: tuple[Any, ...]) -> tuple[Any, ...]:
    """A fact in which NaN equals NaN."""
    return tuple("NaN" if value != value else made(value) for value in fact)


def facts_of(db: Session) -> Facts:
    """Every fact of a session; each is there once and its values have the types of the declaration."""
    found: Facts = {}
    for name in db:
        types = [PYTHON_TYPES[column.base.value] for column in db.schemas[name].columns]
        facts = list(db[name])
        assert all(
            isinstance(value, expected) and type(value) is not bool
            for fact in facts
            for value, expected in zip(fact, types, strict=True)
        )
        found[name] = set(map(comparable, facts))
        assert len(found[name]) == len(facts) == len(db[name]), f"{name} holds a fact twice"
    return found


def levels_of(db: Session) -> Levels:
    """Level and count of every fact of a session."""
    found: Levels = {}
    for name in db:
        table = db[name].to_arrow(annotations=True)
        annotations = zip(*(table[column].to_pylist() for column in ("@level", "@count")), strict=True)
        for fact, annotation in zip(db[name], annotations, strict=True):
            found[name, comparable(fact)] = annotation
    return found


def judge(
    db: Session,
    tree: Tree,
    explicit: Facts,
    kind: Kind = "local",
    is_annotated: bool = True,
    numbers: dict[Any, int] | None = None,
) -> None:
    """Facts, levels and counts of a session are those of the judges, from all its explicit facts. `numbers`: those that
    derivations had in the epoch before; they become those of this one."""
    wanted = evaluate(tree, explicit, with_text_facts=False, numbers=numbers)
    assert facts_of(db) == {name: set(map(comparable, facts)) for name, facts in wanted.items()}
    if is_annotated:
        expected = levels(tree, explicit, kind, with_text_facts=False, known=wanted)
        assert levels_of(db) == {(name, comparable(fact)): pair for (name, fact), pair in expected.items()}


def rules_text(program: GeneratedProgram) -> str:
    """The program without the facts in its text, so that facts can be given that a session has deleted."""
    return "".join(line for line in program.text.splitlines(keepends=True) if ":-" in line or line.startswith("."))


def follow(
    program: GeneratedProgram,
    updates: list[Update],
    levels: Kind = "local",
    *,
    is_annotated: bool = True,
    is_judged_often: bool = True,
    proofs: int = 0,
    **options: Any,
) -> None:
    """A session that goes through updates is what the judges say: at first and after each, or only in the end, so that
    nobody looks at it before. Then so many facts of every relation have proofs that the checker accepts."""
    tree, explicit, numbers = parse_accepted(program.text), program.explicit, dict[Any, int]()
    with elastalog.open(program.text, facts=program.facts, levels=levels, **options) as db:
        for update in [None, *updates]:
            if update is not None:
                db.apply(update.inserted, update.deleted)
                explicit = update.apply_to(explicit)
            if is_judged_often or update is updates[-1]:
                judge(db, tree, explicit, levels, is_annotated, numbers)
        if proofs:
            require_proofs(db, explicit, most=proofs)


HIGHEST = 2**63 - 1
BOMB = "bomb"


def with_bomb(program: GeneratedProgram, number: int) -> GeneratedProgram:
    """The program with a rule more, for one of its derived relations, in which `bomb(1)` makes a number overflow."""
    derived = [name for name in program.schemas if name not in program.inputs]
    name = derived[number % len(derived)]
    simplest = {"number": 0, "symbol": "a", "R": None, "A": Branch("None")}
    head = ", ".join(written(simplest[base]) for base in program.schemas[name])
    text = f".decl {BOMB}(x: number)\n{name}({head}) :- {BOMB}(x), x + {HIGHEST} > 0.\n"
    return replace(program, text=program.text + text, schemas={**program.schemas, BOMB: ("number",)})


@contextmanager
def least_budget(derivations: int) -> Iterator[None]:
    """Lets updates be abandoned after so few derivations; otherwise small programs never see it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SETTINGS, "least_budget", derivations)
        yield
