# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""Random programs with everything that the language has, under every strategy that accepts them, epoch by epoch."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.program.program import Program
from elastalog.session import Session
from tests.engine.judging import comparable, facts_of, levels_of
from tests.generators.construction import EVERYTHING, Fact
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate
from tests.reference.levels import levels

WAYS = [(strategy, "local") for strategy in sorted(STRATEGIES)] + [("elastic", "global")]

PATIENCE = 2.0
"""Seconds after which an epoch is the last of its program: what brute force takes grows without bound."""


def constructs(seed: int) -> int:
    """The number of epochs that were compared: the first one, and one for every update as long as that is quick."""
    features = replace(EVERYTHING, recursion=seed % 4 != 0, subsumptions=seed % 2 == 0, choices=seed % 3 == 0)
    program, updates = seeded_case(seed, features, most_updates=40, percent=98)
    tree, explicit = parse_accepted(program.text), program.explicit
    checked = elastalog.Program.parse(program.text)
    with ExitStack() as stack:
        opened = {way: db for way in WAYS if (db := _opened(checked, program.facts, *way, jobs=1 + seed % 2))}
        for db in opened.values():
            stack.enter_context(db)
        numbers: dict[Any, int] = {}
        compared = 0
        for epoch, update in enumerate([None, *updates] if opened else []):
            began = time.process_time()
            if update is not None:
                explicit = update.apply_to(explicit)
                for db in opened.values():
                    db.apply(update.inserted, update.deleted)
            wanted = evaluate(tree, explicit, with_text_facts=False, numbers=numbers)
            facts = {name: set(map(comparable, known)) for name, known in wanted.items()}
            for (strategy, kind), db in opened.items():
                assert facts_of(db) == facts, f"{strategy}, {kind} levels, epoch {db.epoch}"
                is_judged = kind == ("local", "global")[epoch % 2]  # the brute force takes longer than the engine
                if strategy == "elastic" and is_judged and "<= p" not in program.text:
                    expected = levels(tree, explicit, kind, with_text_facts=False, known=wanted)
                    state = {(name, comparable(fact)): pair for (name, fact), pair in expected.items()}
                    assert levels_of(db) == state, f"{kind} levels, epoch {db.epoch}"
            compared += 1
            if time.process_time() - began > PATIENCE:
                break
    return compared


def _opened(program: Program, facts: dict[str, list[Fact]], strategy: str, kind: str, jobs: int) -> Session | None:
    """A session, or None where the strategy says that it cannot maintain the program."""
    try:
        return elastalog.open(program, facts=facts, strategy=strategy, levels=kind, jobs=jobs)
    except ElastalogError as error:
        # `counting` accepts no recursion; only `elastic` and `recompute`, with local levels, choose and take facts
        # away.
        allowed = {"E0901"} if strategy == "counting" else set()
        allowed |= {"E0905"} if strategy not in ("elastic", "recompute") or kind == "global" else set()
        assert error.diagnostics[0].code in allowed, error
        return None
