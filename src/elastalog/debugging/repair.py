"""Repairs without an update: the smallest set of explicit facts to delete, and of candidates to insert, that reaches
some goals. They are looked for by the question and not by the database: explicit facts become switches as proofs lead
to them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property

from elastalog.backends.protocol import Matrix
from elastalog.debugging.dependencies import Dependencies, dependencies
from elastalog.debugging.investigation import FEW_ELEMENTS, Case, Investigation
from elastalog.debugging.problem import Problem
from elastalog.debugging.sandbox import Seconds, Switch, WordSet
from elastalog.debugging.search import News, Outcome, Search
from elastalog.debugging.switches import Switches
from elastalog.debugging.update_search import Plan, search_update
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps

MOST_STEPS = 100_000
"""Steps of proofs that are kept from question to question."""


class Ground:
    """What is known about an epoch and its explicit facts, kept from question to question."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._steps: Steps | None = None
        self.corners: dict[str, WordSet | None] = {}
        """See `Corners`; without candidates."""

    @cached_property
    def explicit(self) -> Mapping[str, Matrix]:
        """The explicit facts, by relation."""
        backend = self._case.setting.backend
        found = {}
        for name, relation in backend.program.relations.items():
            if not relation.is_hidden:
                words = backend.facts(relation.given or name).words
                explicit = words[backend.is_explicit(name, words)]
                if len(explicit):
                    found[name] = explicit
        return found

    @property
    def size(self) -> int:
        return sum(map(len, self.explicit.values()))

    def changes(self) -> dict[WordFact, bool]:
        """All explicit facts as changes of a world without facts: all came."""
        return {(name, tuple(row)): True for name, words in self.explicit.items() for row in words.tolist()}

    @cached_property
    def signs(self) -> Dependencies:
        """How every relation depends on those with explicit facts."""
        return dependencies(self._case.setting.backend.program, self.explicit)

    def steps(self) -> Steps:
        """Steps of proofs in this epoch."""
        if self._steps is None or len(self._steps.known) > MOST_STEPS:
            self._steps = self._case.steps(is_any=True)
        return self._steps


def repair(
    case: Case,
    ground: Ground,
    plan: Plan,
    candidates: Mapping[WordFact, bool],
    seconds_allowed: float,
    news: News,
) -> Outcome:
    """A smallest set of changes of one epoch. `candidates`: the facts that may be inserted, and whether each is there,
    so that it may be deleted. Without unwanted facts nothing else changes; otherwise any explicit fact but those that
    are kept may be deleted. What is proven by the question alone is; what is not is looked for among all explicit
    facts, where these are few."""
    end = time.monotonic() + seconds_allowed

    def among(changes: Mapping[WordFact, bool]) -> Outcome:
        """Mends by changes of which all are known beforehand."""
        return search_update(Investigation(case, changes), plan, max(end - time.monotonic(), 0.1), news)

    if not plan.goals.absent:
        return among(candidates)
    outcome = Search(_problem(case, ground, plan, candidates, seconds_allowed), news).outcome()
    if outcome.is_proven or ground.size > FEW_ELEMENTS or time.monotonic() > end:
        return outcome
    exact = among({**ground.changes(), **candidates})
    return exact if plan.weight(exact) <= plan.weight(outcome) else outcome


def _problem(
    case: Case, ground: Ground, plan: Plan, candidates: Mapping[WordFact, bool], seconds_allowed: float
) -> Problem:
    """To choose among all explicit facts and the candidates."""
    inserted = [fact for fact, is_there in candidates.items() if not is_there]
    signs, corners = ground.signs, ground.corners
    if inserted:
        bases = {*ground.explicit, *(name for name, _ in inserted)}
        signs, corners = dependencies(case.epochs.backend.program, bases), {}
    given = (Switch(fact, adds=True) for fact in inserted if fact not in plan.kept)
    return Problem(
        case=case,
        goals=plan.goals,
        switches=Switches(given, plan.weights, ground.explicit, plan.kept),
        signs=signs,
        base_steps=ground.steps,
        corners=corners,
        seconds=Seconds(),
        seconds_allowed=seconds_allowed,
    )
