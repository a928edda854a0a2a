"""Repairs without an update: which explicit facts to delete, and which candidates to insert."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from elastalog.backends.protocol import Matrix
from elastalog.debugging.dependencies import Dependencies, Parts, dependencies
from elastalog.debugging.investigation import FEW_ELEMENTS, Investigation, limits_for
from elastalog.debugging.known_proofs import KnownProofs, ProofGrowth
from elastalog.debugging.open_search import OpenTask, open_search
from elastalog.debugging.open_switches import OpenCorners, OpenSwitches
from elastalog.debugging.oracles import Goals
from elastalog.debugging.reasons import steps_of
from elastalog.debugging.sandbox import Sandbox, Seconds, WordSet
from elastalog.debugging.search import News, NoSolution, judged, seconds_a_trial
from elastalog.debugging.update_search import ConnectingProofs, Outcome, Plan, search_update
from elastalog.evaluation.epochs import Epochs
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
        """See `OpenCorners`; without candidates."""

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

    epochs: Epochs
    setting: Setting
    reading: Reading
    parts: Parts
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
        investigation = Investigation(
            self.epochs, self.setting.dictionary, self.reading, changes, None, self.parts
        )  # fmt: skip
        plan = Plan(asked.goals, True, False, asked.kept, asked.weights)
        left = max(end - time.monotonic(), 0.1)
        return search_update(investigation, plan, self.setting, self.reading, self.epochs, left, self.news)

    def _open(self, asked: RepairTask) -> Outcome:
        inserted = [fact for fact, is_there in asked.candidates.items() if not is_there]
        signs, known_corners = self.ground.signs, self.ground.corners
        if inserted:
            bases = {*self.ground.explicit, *(name for name, _ in inserted)}
            signs, known_corners = dependencies(self.epochs.backend.program, bases), {}
        switches = OpenSwitches(self.ground.explicit, inserted, asked.kept, asked.weights)
        sandbox = Sandbox(self.epochs, switches.known, Seconds(), seconds_a_trial(self.seconds_allowed))
        limits = partial(limits_for, self.epochs, self.parts)
        corners = OpenCorners(sandbox, switches, signs, lambda name: limits((name,)), known_corners)
        proofs = KnownProofs(switches)
        connecting = ConnectingProofs(self.setting, self.reading, asked.goals)
        task = OpenTask(
            sandbox,
            switches,
            signs,
            asked.goals,
            proofs,
            ProofGrowth(self.setting, self.reading, switches, signs, corners, proofs, self.ground),
            corners,
            limits(name for name, _ in asked.goals.all),
            self.seconds_allowed,
            self.news,
            connecting.look,
        )
        found = judged(open_search(task), switches.weights, sandbox)
        if isinstance(found, NoSolution):
            return Outcome(found, (), (), sandbox.seconds)
        flipped = sorted((switches.known[i].fact for i in found.flipped), key=self._place)
        return Outcome(found, tuple(flipped), connecting.all(), sandbox.seconds)

    def _place(self, fact: WordFact) -> tuple[object, ...]:
        return fact[0], self.reading.sort_key(fact)
