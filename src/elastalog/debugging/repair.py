"""Repairs without an update: the smallest set of explicit facts to delete, and of candidates to insert, that reaches
some goals.

Conditions are collected by the loop of `search`, but by the question and not by the database: look whether the choice
cuts all known proofs, try it, and add the proofs that are left. Explicit facts that no proof has led to can matter
where rules negate; a condition then also has their relation, as a variable of its own that costs as much as one fact
does at the least. A solution that weighs no more than the best choice with such variables is a smallest one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from elastalog.backends.protocol import Matrix
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.dependencies import Dependencies, dependencies
from elastalog.debugging.investigation import FEW_ELEMENTS, Case, Investigation, limits_for
from elastalog.debugging.known_proofs import steps_of
from elastalog.debugging.oracles import Goals, ProofOracle
from elastalog.debugging.sandbox import Sandbox, Seconds, Switch, WordSet
from elastalog.debugging.search import HittingSets, News, NoSolution, judged, seconds_a_trial
from elastalog.debugging.switches import Condition, Switches
from elastalog.debugging.update_search import ConnectingProofs, Outcome, Plan, search_update
from elastalog.debugging.zero_one import TOLERANCE, Choice, ZeroOneProgram
from elastalog.evaluation.epochs import TrialLimits
from elastalog.provenance.explain import Setting
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import Steps

MOST_STEPS = 100_000
"""Steps of proofs that are kept from question to question."""


class Ground:
    """What is known about an epoch and its explicit facts, kept from question to question."""

    def __init__(self, setting: Setting, reading: Reading) -> None:
        self._setting = setting
        self._reading = reading
        self._steps: Steps | None = None
        self.corners: dict[str, WordSet | None] = {}
        """See `Corners`; without candidates."""

    @cached_property
    def explicit(self) -> Mapping[str, Matrix]:
        """The explicit facts, by relation."""
        backend = self._setting.backend
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
        return dependencies(self._setting.backend.program, self.explicit)

    @property
    def steps(self) -> Steps:
        """Steps of proofs in this epoch."""
        if self._steps is None or len(self._steps.known) > MOST_STEPS:
            self._steps = steps_of(self._setting, self._reading, is_any=True)
        return self._steps


@dataclass(frozen=True, slots=True)
class RepairTask:
    """What is to be mended. `candidates`: the facts that may be inserted, and whether each is there, so that it may be
    deleted. Without unwanted facts nothing else changes; otherwise any explicit fact but those `kept` may be
    deleted."""

    goals: Goals
    candidates: Mapping[WordFact, bool]
    kept: frozenset[WordFact] = frozenset()
    weights: Mapping[WordFact, float] = field(default_factory=dict)

    def weight(self, outcome: Outcome) -> float:
        """What an outcome weighs; infinitely much if nothing was found."""
        if isinstance(outcome.found, NoSolution):
            return math.inf
        return sum(self.weights.get(fact, 1.0) for fact in outcome.flipped)


@dataclass(frozen=True, slots=True)
class Repairer:
    """Mends one epoch."""

    case: Case
    ground: Ground
    seconds_allowed: float
    news: News

    def repair(self, asked: RepairTask) -> Outcome:
        """A smallest set of changes. What is proven by the question alone is; what is not is looked for among all
        explicit facts, where these are few."""
        end = time.monotonic() + self.seconds_allowed
        if not asked.goals.absent:
            return self._among(asked, asked.candidates, end)
        outcome = self._open(asked)
        found = outcome.found
        is_proven = found.is_proven if isinstance(found, NoSolution) else found.why_not_proven is None
        if is_proven or self.ground.size > FEW_ELEMENTS or time.monotonic() > end:
            return outcome
        exact = self._among(asked, {**self.ground.changes(), **asked.candidates}, end)
        return exact if asked.weight(exact) <= asked.weight(outcome) else outcome

    def _among(self, asked: RepairTask, changes: Mapping[WordFact, bool], end: float) -> Outcome:
        """Mends by changes of which all are known beforehand."""
        plan = Plan(asked.goals, True, False, asked.kept, asked.weights)
        return search_update(Investigation(self.case, changes), plan, max(end - time.monotonic(), 0.1), self.news)

    def _open(self, asked: RepairTask) -> Outcome:
        epochs, ground = self.case.epochs, self.ground
        inserted = [fact for fact, is_there in asked.candidates.items() if not is_there]
        signs, known_corners = ground.signs, ground.corners
        if inserted:
            bases = {*ground.explicit, *(name for name, _ in inserted)}
            signs, known_corners = dependencies(epochs.backend.program, bases), {}
        given = (Switch(fact, adds=True) for fact in inserted if fact not in asked.kept)
        switches = Switches(given, asked.weights, ground.explicit, asked.kept)
        sandbox = Sandbox(epochs, switches.known, Seconds(), seconds_a_trial(self.seconds_allowed, epochs.backend))
        connecting = ConnectingProofs(self.case.setting, self.case.reading, asked.goals)
        search = OpenSearch(
            sandbox=sandbox,
            goals=asked.goals,
            limits=limits_for(self.case, (name for name, _ in asked.goals.all)),
            seconds_allowed=self.seconds_allowed,
            news=self.news,
            witness=connecting.look,
            switches=switches,
            case=self.case,
            ground=ground,
            signs=signs,
            known_corners=known_corners,
        )
        found = judged(search.search(), switches.weights, sandbox)
        if isinstance(found, NoSolution):
            return Outcome(found, (), (), sandbox.seconds)
        facts = (switches.known[i].fact for i in found.flipped)
        flipped = sorted(facts, key=lambda fact: (fact[0], self.case.reading.sort_key(fact)))
        return Outcome(found, tuple(flipped), connecting.all(), sandbox.seconds)


# --- the search ------------------------------------------------------------------------------------------------------


FEW_DERIVATIONS = 20_000
"""Derivations that the trial of a choice may cost while there may be others as good; ten times as many when each of
those has cost more."""

MOST_DEAR = 12
"""Switches of choices that cost more, before more is allowed."""

A_LITTLE = 1e-4


@dataclass(kw_only=True)
class OpenSearch(HittingSets):
    """The search among all explicit facts and the candidates."""

    case: Case
    ground: Ground
    signs: Dependencies
    known_corners: dict[str, WordSet | None]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._oracle = ProofOracle(
            case=self.case, sandbox=self.sandbox, switches=self.switches, signs=self.signs, goals=self.goals,
            limits=self.limits, deadline=self.deadline, witness=self.witness,
            base_steps=lambda: self.ground.steps, known_corners=self.known_corners,
        )  # fmt: skip
        self._dear = frozenset[int]()
        """Switches of choices whose trial was broken off: there may be others that do as well."""
        self._allowed = FEW_DERIVATIONS

    # --- choices ---

    def best(self) -> Choice | None:
        """One of the best choices, if possible without switches that are expensive to try."""
        choice = self._solve()
        if choice is None or choice.flipped.isdisjoint(self._dear):
            return choice
        other = self._solve(is_sparing=True)
        if other is None or self.weight(other.flipped) > self.weight(choice.flipped) + TOLERANCE:
            return choice
        return replace(choice, flipped=other.flipped)

    def least(self, choice: Choice | None) -> float:
        best = self._solve(with_others=True)
        return math.inf if best is None else best.bound

    def widen(self) -> bool:
        return self.switches.close(self._others())

    def proven_bound(self) -> float:
        return 0.0 if self._others() else self.bound

    def least_weight(self) -> float:
        return self.switches.least_weight

    def _others(self) -> list[str]:
        """The relations with explicit facts that may matter and are not switches yet."""
        named = (name for condition in self.known for name in condition.relations)
        return sorted(self.switches.are_open(named))

    def _solve(self, with_others: bool = False, is_sparing: bool = False) -> Choice | None:
        """A best choice by the conditions known: with a variable for each relation other facts of which may matter, or
        where what is expensive to try weighs a little more."""
        switches = self.switches
        names = self._others() if with_others else ()
        others = {name: len(switches.known) + i for i, name in enumerate(names)}
        weights = [*switches.weights, *[switches.least_weight] * len(others)]
        for i in self._dear if is_sparing else ():
            weights[i] *= 1 + A_LITTLE
        program = ZeroOneProgram(weights)
        for condition in self.known:
            deletions = [i for i in switches.deletions(condition.relations) if i not in condition.flipped]
            unmet = [others[name] for name in condition.relations if name in others]
            program.add_clause({*condition.switches, *deletions, *unmet}, condition.flipped)
        with self.sandbox.seconds.spent_on("solving"):
            return program.solve(self.deadline)

    # --- what is wrong with them ---

    def wrong_with(self, choice: Choice) -> list[Condition] | None:
        try:
            return self._oracle.conditions(choice.flipped, partial(self._first_limits, choice))
        except BudgetExceeded:
            self._dear |= choice.flipped
            return None

    def _first_limits(self, choice: Choice) -> TrialLimits | None:
        """Tight limits for a choice to which there may be another as good; None if it may cost what it does."""
        limits = self.limits
        if limits is None or not choice.flipped:
            return None
        is_last = choice.flipped <= self._dear
        if self._allowed >= limits.derivations:
            return None if is_last else limits
        if is_last or len(self._dear) >= MOST_DEAR:
            self._allowed *= 10
            self._dear = frozenset()
        return replace(limits, derivations=min(self._allowed, limits.derivations))

    # --- any solution ---

    def start(self) -> frozenset[int] | None:
        """From the last choice on, all that a condition names is turned, until no goal is missed."""
        chosen = self.lately
        while new := self._oracle.conditions(chosen):
            turned = frozenset(i for condition in new for i in condition.switches) - chosen
            if not turned:
                return None
            chosen |= turned
        return chosen
