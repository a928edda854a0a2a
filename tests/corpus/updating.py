"""Random updates under every strategy, each epoch compared with an evaluation of the same facts anew."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.program import Program, with_arithmetic
from elastalog.session import Session
from tests.corpus import functors
from tests.engine.judging import Facts, facts_of
from tests.generators.updates import Update

Tell = Callable[[str], None]

_REFUSALS = {"E0901", "E0905"}
"""What a strategy may say of a program: it is recursive; it chooses or subsumes."""


@contextmanager
def opened(program: Program, facts: Facts | Path, **options: Any) -> Iterator[Session]:
    with elastalog.open(with_arithmetic(program, "wrap"), facts=facts, engine="local", **options) as db:
        yield db


def initial(program: Program, folder: Path, **options: Any) -> Facts:
    """The facts that a folder gives, but for those that the text gives anyway."""
    with opened(program, folder, strategy="recompute", **options) as db:
        written = {(fact.relation, fact.values) for fact in program.checked.facts}
        read = [name for name, r in program.checked.relations.items() if any(d.kind == "input" for d in r.directives)]
        return {name: {fact for fact in db.explicit(name) if (name, fact) not in written} for name in read}


def random_updates(explicit: Facts, random: Random, number: int) -> list[Update]:
    """Deletes a few facts, then inserts some of them again and some made of the columns of others, and so on."""
    updates, gone = [], {name: [] for name in explicit}  # type: tuple[list[Update], dict[str, list[Any]]]
    for _ in range(number):
        update = Update({}, {})
        for name in sorted(explicit):
            present = sorted(explicit[name], key=sort_key)
            if present and random.random() < 0.7:
                update.deleted[name] = random.sample(present, random.randint(1, max(1, len(present) // 4)))
            if present and random.random() < 0.7:
                columns = list(zip(*present, strict=True))
                mixed = [tuple(random.choice(column) for column in columns) for _ in range(random.randint(0, 2))]
                update.inserted[name] = [*random.sample(gone[name], min(2, len(gone[name]))), *mixed]
            gone[name] += update.deleted.get(name, [])
        updates.append(update)
        explicit = update.apply_to(explicit)
    return updates


def judge(
    program: Program, explicit: Facts, updates: list[Update], strategies: list[str], **options: Any
) -> Iterator[dict[str, Any]]:
    """What came of each strategy: `epochs` that were equal, or the one that was not, with a relation."""
    epochs = [explicit]
    for update in updates:
        epochs.append(update.apply_to(epochs[-1]))
    wanted: list[Facts] = []
    with opened(program, explicit, strategy="recompute", **options) as before:
        for number, facts in enumerate(epochs):
            if number and _has_history(program):
                before.apply(updates[number - 1].inserted, updates[number - 1].deleted)
                wanted.append(facts_of(before))
            else:
                with opened(program, facts, strategy="recompute", **options) as db:
                    wanted.append(facts_of(db))
    for strategy in strategies:
        try:
            with opened(program, explicit, strategy=strategy, **options) as db:
                told: dict[str, Any] = {"strategy": strategy, "epochs": 0}
                for number, facts in enumerate(wanted):
                    if number:
                        db.apply(updates[number - 1].inserted, updates[number - 1].deleted)
                    found = facts_of(db)
                    wrong = sorted(name for name in facts if found[name] != facts[name])
                    if wrong:
                        told["different"] = {"epoch": number + 1, "relations": wrong[:8]}
                        break
                    told["epochs"] += 1
        except ElastalogError as error:
            code = error.diagnostics[0].code
            told = {"strategy": strategy, "refused" if code in _REFUSALS else "failed": code}
        except Exception as error:
            told = {"strategy": strategy, "failed": f"{type(error).__name__}: {error}"[:200]}
        yield told


def _has_history(program: Program) -> bool:
    """Whether it has numbers that a session goes on with: those of its texts, those of derivations."""
    return any(f"functor='{name}'" in repr(program.checked.rules) for name in ("ord", "autoinc"))


def judge_folder(path: Path, folder: Path, seed: int, rounds: int, include: Iterable[Path], tell: Tell) -> None:
    """Tells what came of each strategy as it is known, as a line of JSON."""
    program = Program.load(path, include=include)
    given = path.parent / functors.PYTHON
    options: dict[str, Any] = {}
    if given.exists():
        made = runpy.run_path(str(given))
        options["functors"] = {name: made[name] for name in program.checked.functors if name in made}
    explicit = initial(program, folder, **options)
    updates = random_updates(explicit, Random(seed), rounds)
    for told in judge(program, explicit, updates, list(STRATEGIES), **options):
        tell(json.dumps(told))
