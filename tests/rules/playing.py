"""Random updates of rules and facts together, for generated programs.

The clauses of a generated program are a pool, of which some are in force. Rules that lead back from higher layers to
lower ones are in the pool too: they make and break recursion, and now and then a program that cannot be stratified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program, rule_texts
from elastalog.session import Session
from tests.generators.construction import Features, GeneratedProgram, written
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update

FEATURES = Features(arithmetic=False)
"""Without arithmetic every program ends, whatever leads back to what."""
UNSTRATIFIED = {"E0412", "E0413"}
"""The codes of programs that cannot be stratified."""


@dataclass(slots=True)
class Case:
    """A program whose rules change. `header`: its declarations and facts."""

    header: str
    pool: list[str]
    current: list[str]
    explicit: dict[str, set[tuple[Any, ...]]]
    facts: dict[str, Any]
    updates: list[Update] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.header + "".join(f"{rule}\n" for rule in self.current)


@dataclass(frozen=True, slots=True)
class Step:
    """Rules that come and go, and facts."""

    added: list[str]
    removed: list[str]
    update: Update


def is_stratified(text: str) -> bool:
    try:
        Program.parse(text)
    except ElastalogError as error:
        errors = {found.code for found in error.diagnostics if found.severity == "error"}
    else:
        return True
    assert errors <= UNSTRATIFIED
    return False


def case_of(seed: int, features: Features = FEATURES, most_updates: int = 4) -> Case:
    program, updates = seeded_case(seed, features, most_updates)
    choice = Random(seed)
    lines = program.text.splitlines()
    header = "".join(f"{line}\n" for line in lines if ":-" not in line)
    # As single rules, each once, so that what is expected is a matter of sets.
    closures = set(rule_texts(Program.parse(header)))  # the rules that `eqrel` stands for, which cannot change
    pool = [rule for rule in dict.fromkeys(rule_texts(Program.parse(program.text))) if rule not in closures]
    if not features.arithmetic:
        pool = list(dict.fromkeys([*pool, *(leading_back(program, choice) for _ in range(3))]))
    current = [rule for rule in pool if choice.random() < 0.55]
    return Case(header, pool, current, program.explicit, program.facts, updates)


def leading_back(program: GeneratedProgram, choice: Random) -> str:
    """A rule for some relation from any other."""
    head, body = choice.choice(list(program.schemas)), choice.choice(list(program.schemas))
    variables = [f"v{i}" for i in range(len(program.schemas[body]))]
    arguments = []
    for base in program.schemas[head]:
        fitting = [v for v, b in zip(variables, program.schemas[body], strict=True) if b == base]
        arguments.append(choice.choice(fitting) if fitting else written(1 if base == "number" else "a"))
    read = ", ".join(v if v in arguments else "_" for v in variables)
    return f"{head}({', '.join(arguments)}) :- {body}({read})."


def step_of(case: Case, update: Update, choice: Random) -> Step:
    absent = [rule for rule in case.pool if rule not in case.current]
    added = choice.sample(absent, min(len(absent), choice.choice((0, 1, 1, 2))))
    removed = choice.sample(case.current, min(len(case.current), choice.choice((0, 1, 1, 2))))
    return Step(added, removed, update if choice.random() < 0.5 else Update({}, {}))


def apply(db: Session, step: Step, choice: Random) -> Any:
    """Applies a step, in one of the ways there are; what it changed."""
    numbers = {text.partition("\n")[0]: number for number, text in enumerate(rule_texts(db.program), 1)}
    removed: list[int | str] = [numbers[rule] if choice.random() < 0.5 else loose(rule) for rule in step.removed]
    if not step.update.deleted and not step.update.inserted and choice.random() < 0.5:
        return db.change_rules("\n".join(step.added), removed)
    with db.update() as pending:
        for name, facts in step.update.deleted.items():
            pending.delete(name, facts)
        for rule in step.added:
            pending.add_rules(loose(rule))
        for name, facts in step.update.inserted.items():
            pending.insert(name, facts)
        pending.remove_rules(removed)
    return pending.changes


def loose(rule: str) -> str:
    """The same rule in another layout."""
    return rule.replace(" :- ", ":-\n   ").replace("), ", ") ,  ")


def opened(case: Case, **options: Any) -> Session:
    """A fresh session of the present program over the present facts."""
    header = "".join(line for line in case.header.splitlines(keepends=True) if line.startswith("."))
    rules = "".join(f"{rule}\n" for rule in case.current)
    return elastalog.open(header + rules, facts=case.explicit, **options)
