"""A session beside the judges: its facts, levels and counts in the form in which `tests/reference` gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
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


def distinct(facts: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Facts none of which is there twice."""
    found = list(map(comparable, facts))
    assert len(found) == len(set(found))
    return set(found)


def sides_of(changes: elastalog.Changes) -> dict[str, tuple[Any, Any]]:
    """The facts inserted and deleted, by relation that changed."""
    return {name: (distinct(changes[name].inserted), distinct(changes[name].deleted)) for name in changes}


def difference(before: Facts, after: Facts) -> dict[str, tuple[Any, Any]]:
    return {n: (after[n] - before[n], before[n] - after[n]) for n in after if after[n] != before[n]}


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


def state_of(db: Session) -> Any:
    """The facts of a session, with their levels and counts if it keeps these."""
    return levels_of(db) if db._epochs.strategy.annotation.has_levels else facts_of(db)


def is_as_anew(db: Session, text: str, explicit: Mapping[str, Any], **options: Any) -> None:
    """A session is what one of the same facts is that is opened now, its levels and counts too if it keeps any."""
    with elastalog.open(text, explicit, **options) as fresh:
        assert state_of(db) == state_of(fresh)


def how(db: Session, relation: str) -> set[str]:
    """How the last epoch came to the facts of a relation: nothing if it did not touch its stratum."""
    return {work.how for work in db.log()[-1].strata if relation in work.relations}


@dataclass
class Followed:
    """A session that goes through updates, and its explicit facts. Each update changes what it says that it changes;
    after it, and at first, `look` finds the session as it should be, or else nobody looks."""

    db: Session
    explicit: Facts
    look: Callable[[Session, Facts], None] | None

    def apply(self, inserted: Mapping[str, Any] = {}, deleted: Mapping[str, Any] = {}) -> elastalog.Changes:
        before = facts_of(self.db) if self.look else {}
        changes = self.db.apply(inserted, deleted)
        self.explicit = Update(dict(deleted), dict(inserted)).apply_to(self.explicit)
        if self.look:
            assert sides_of(changes) == difference(before, facts_of(self.db))
            self.look(self.db, self.explicit)
        return changes

    def how(self, relation: str) -> set[str]:
        return how(self.db, relation)

    def prove(self, *relations: str, most: int | None = None) -> None:
        """Facts have proofs that the checker accepts, and evaluation in another way finds the same ones."""
        assert self.db.verify().is_exact
        require_proofs(self.db, self.explicit, *relations, most=most)


@contextmanager
def followed(
    text: str,
    facts: Mapping[str, Any],
    by: Literal["reference", "anew", "nobody"] = "reference",
    explicit: Facts | None = None,
    is_annotated: bool | None = None,
    **options: Any,
) -> Iterator[Followed]:
    """A session of a program whose epochs are judged, by the reference or by a session that is opened anew of the same
    facts; `explicit` is what `facts` and the text give, if the text gives any. The reference knows the levels of all
    programs without subsumption: `is_annotated` says whether they are those of the session."""
    tree, numbers = parse_accepted(text), dict[Any, int]()
    is_annotated = options.get("strategy", "elastic") == "elastic" if is_annotated is None else is_annotated
    alike = {name: options[name] for name in ("strategy", "levels", "engine", "functors") if name in options}

    def by_reference(db: Session, explicit: Facts) -> None:
        judge(db, tree, explicit, options.get("levels", "local"), is_annotated, numbers)

    def anew(db: Session, explicit: Facts) -> None:
        is_as_anew(db, text, explicit, **alike)

    look = {"reference": by_reference, "anew": anew, "nobody": None}[by]
    with elastalog.open(text, facts, **options) as db:
        result = Followed(db, explicit or {name: set(map(tuple, rows)) for name, rows in facts.items()}, look)
        if look:
            look(db, result.explicit)
        yield result


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
    by: Literal["reference", "nobody"] = "reference" if is_judged_often else "nobody"
    with followed(
        program.text, program.facts, by, program.explicit, is_annotated=is_annotated, levels=levels, **options
    ) as session:
        for update in updates:
            session.apply(update.inserted, update.deleted)
        if not is_judged_often:
            judge(session.db, parse_accepted(program.text), session.explicit, levels, is_annotated)
        if proofs:
            require_proofs(session.db, session.explicit, most=proofs)


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
