"""What is known about the changes between two epochs, kept from question to question.

Everything here starts from the state of the later epoch, and returns to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from elastalog.backends.protocol import ClauseDerivations
from elastalog.debugging.bracket import Bracket
from elastalog.debugging.collection import CollectedDerivations, TooLarge
from elastalog.debugging.dependencies import Dependencies, Parts, dependencies
from elastalog.debugging.graph import DerivationGraph
from elastalog.debugging.sandbox import Seconds, Switch, are_present, update_of
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.epochs import Epochs, Trial, TrialLimits, can_limit
from elastalog.provenance.explain import Setting
from elastalog.provenance.metrics import HEIGHT
from elastalog.provenance.ranks import ComputedSteps, Scope
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import AnnotatedSteps, Steps
from elastalog.settings import SETTINGS

MOST_PARTS = 8
"""Parts of the program of which derivations are kept."""


@dataclass(frozen=True, slots=True)
class Case:
    """What questions are about: the epochs of a session, how their facts are read and proved, and the parts of the
    program."""

    epochs: Epochs
    setting: Setting
    reading: Reading
    parts: Parts

    def steps(self, is_any: bool = False) -> Steps:
        """Steps of proofs in the present state; with `is_any` those that are found fastest."""
        setting = self.setting
        if setting.is_annotated:
            return (AnySteps if is_any else TrialSteps)(self.reading, setting.is_global)
        return ComputedSteps(self.reading, HEIGHT, "all" if setting.is_global else "stratum")


class TrialSteps(AnnotatedSteps):
    """Where levels are of no help, since subsumption has taken away what they say a fact came from, steps are computed
    from all derivations."""

    def find(self, facts: Iterable[WordFact]) -> None:
        wanted = list(facts)
        try:
            super().find(wanted)
        except ElastalogError as failed:
            if failed.diagnostics[0].code != "E0740":
                raise
            scope: Scope = "all" if self._is_global else "stratum"
            computed = ComputedSteps(self.reading, HEIGHT, scope, self.superseded)
            computed.find(wanted)
            self.known |= computed.known  # all of a neighbourhood, so that no proof runs in a circle


class AnySteps(TrialSteps):
    """Takes whichever derivation comes first: reasons need no particular proof."""

    def _smallest(self, found: ClauseDerivations, usable: Any) -> Any:
        return usable[np.unique(found.heads[usable], return_index=True)[1]]


@dataclass(eq=False)
class Investigation:
    """`changes`: the explicit facts that changed, and whether each came. `elements`: the same facts in order, unless
    they are `ranked`: of choices that are as good, that with the first ones is taken. `previous`: a trial that leads to
    the earlier epoch, if there is one already."""

    case: Case
    changes: Mapping[WordFact, bool]
    _previous: Trial | None = None
    ranked: bool = False

    def __post_init__(self) -> None:
        self._epochs, order = self.case.epochs, self.case.reading.sort_key
        self.elements = tuple(self.changes)
        if not self.ranked:
            self.elements = tuple(sorted(self.changes, key=lambda fact: (fact[0], order(fact))))
        self._switches: dict[bool, tuple[Switch, ...]] = {}
        self._parts: list[tuple[frozenset[int], CollectedDerivations]] = []
        self._too_large: list[frozenset[int]] = []

    def switches(self, is_applied: bool) -> tuple[Switch, ...]:
        """The elements around a base, which is the later epoch where they are applied, otherwise the earlier."""
        known = self._switches.get(is_applied)
        if known is None:
            known = tuple(Switch(fact, self.changes[fact] != is_applied) for fact in self.elements)
            self._switches[is_applied] = known
        return known

    @cached_property
    def signs(self) -> Dependencies:
        """How every relation depends on those of the elements."""
        return dependencies(self._epochs.backend.program, {name for name, _ in self.elements})

    def graph(self, facts: Sequence[WordFact], seconds: Seconds) -> DerivationGraph | None:
        """A graph that decides in which states some facts hold; None if there is no exact one, or it is too large."""
        strata = self.case.parts.below(name for name, _ in facts)
        if any(part <= strata for part in self._too_large):
            return None
        collected = self._collected(strata) or self._begin(strata, seconds)
        try:
            with seconds.spent_on("provenance"):
                return collected.graph(facts)
        except BaseException as error:
            # What was collected in part is of no use; Ctrl-C or a limit of the user may also be the reason.
            self._parts = [(part, held) for part, held in self._parts if held is not collected]
            if isinstance(error, TooLarge):
                self._too_large.append(strata)
                return None
            raise

    def is_out_of_reach(self, fact: WordFact) -> bool:
        """Whether a fact is known to hold in no state. The later epoch must be in force."""
        collected = self._collected(self.case.parts.below((fact[0],)))
        return collected is not None and collected.is_fixed(fact) and not are_present(self._epochs.backend, [fact])[0]

    def _collected(self, strata: frozenset[int]) -> CollectedDerivations | None:
        return next((held for part, held in self._parts if strata <= part), None)

    def _begin(self, strata: frozenset[int], seconds: Seconds) -> CollectedDerivations:
        """Finds what varies in a part of the program, before its derivations can be collected."""
        program = self._epochs.backend.program
        dictionary = self.case.setting.dictionary
        concerned = {name for stratum in program.strata if stratum.number in strata for name in stratum.relations}
        came = [fact for fact in self.elements if self.changes[fact] and fact[0] in concerned]
        went = [fact for fact in self.elements if not self.changes[fact] and fact[0] in concerned]
        with seconds.spent_on("provenance"):
            bracket = Bracket(self._epochs, dictionary, strata, update_of((), went), update_of(came, ()))
            found = CollectedDerivations(self._epochs.backend, dictionary, bracket, self.elements)
        self._parts = [*self._parts[1 - MOST_PARTS :], (strata, found)]
        seconds.number_of_limited_trials += bracket.trials
        return found

    @contextmanager
    def in_first(self, seconds: Seconds | None = None) -> Iterator[None]:
        """The earlier epoch is in force within the block."""
        began = time.perf_counter()
        if self._previous is None:
            came = [fact for fact in self.elements if self.changes[fact]]
            self._previous = self._epochs.trial(update_of(came, (f for f in self.elements if not self.changes[f])))
        with self._previous:
            if seconds is not None:
                seconds.trials += time.perf_counter() - began
            yield


def limits_for(case: Case, relations: Iterable[str]) -> TrialLimits | None:
    """How much of the program must be tried to know about some relations, and whether a state has a result at all; None
    for all of it."""
    strata = case.parts.decisive(relations)
    if strata is None or not can_limit(case.epochs.backend, case.epochs.strategy):
        return None
    return TrialLimits(strata, SETTINGS.trial_derivations)
