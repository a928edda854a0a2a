"""Why and why not, for one session: chooses how steps are found, and keeps what was found for the epoch it belongs
to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

import numpy as np

from elastalog.analysis.listing import show_rule
from elastalog.analysis.pattern import Pattern as FactPattern
from elastalog.analysis.program import CheckedProgram, Rule, Value
from elastalog.backends.protocol import Backend
from elastalog.diagnostics.arguments import is_whole, require_mapping, require_number
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.provenance.absence import Absence, PatternAbsence
from elastalog.provenance.alternatives import Alternatives
from elastalog.provenance.fact import Fact
from elastalog.provenance.joins import Pattern
from elastalog.provenance.metrics import HEIGHT, Metric
from elastalog.provenance.proof import Proof
from elastalog.provenance.ranks import ComputedSteps, Neighbourhood, Scope
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.rivals import candidates, dominating, holders
from elastalog.provenance.rule_variables import value_of_variable
from elastalog.provenance.search import Assembly
from elastalog.provenance.steps import AnnotatedSteps, Steps, Superseded
from elastalog.provenance.why_not import explain_absence
from elastalog.provenance.why_not_pattern import explain_pattern
from elastalog.relations.words import Dictionary

Asking: TypeAlias = Callable[[], AbstractContextManager[object]]

LEAST = "the least height of all proofs"
LEAST_BY_STRATUM = "the least within each stratum"
BY_RANKS = "the least within each stratum but those whose values improve"


@dataclass(frozen=True, slots=True)
class Setting:
    """What proofs are made from. `is_annotated`: the backend keeps levels; `is_global`: they run through all strata."""

    program: CheckedProgram
    backend: Backend
    dictionary: Dictionary
    is_annotated: bool
    is_global: bool
    metric: Metric = HEIGHT


class Explainer:
    """Answers why and why not about the present epoch, whose number `epoch` gives. `asking` makes the block in which a
    proof or an absence is expanded later: no update must come between, and it may take so long. Who asks the explainer
    itself sees to that. Raises LimitReached when the time of the backend's watch is over."""

    def __init__(self, setting: Setting, epoch: Callable[[], int], asking: Asking = nullcontext) -> None:
        self._setting = setting
        self._epoch = epoch
        self._asking = asking
        self._of_epoch: _OfEpoch | None = None

    def explain(self, fact: Fact, depth: int | None = None) -> Proof:
        """The best proof of a fact, to a depth. Raises E0701 if the fact does not hold."""
        return self._now().prove(fact, depth)

    def derivations(self, fact: Fact) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level: by rule, then by the facts used."""
        return self._now().derivations(fact)

    def proofs(self, fact: Fact, limit: int) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, no fact below itself; at most `limit`."""
        require_number("limit", limit, 0, whole=True)
        return islice(self._now().proofs(fact), limit)

    def explain_absence(
        self, fact: Fact, limit: int = 5, rule: int | None = None, bindings: Mapping[str, Value] | None = None
    ) -> Absence:
        """The nearest failing derivations of a fact. Raises E0702 if it holds. `rule`, by its number in the relation,
        and `bindings` restrict the search."""
        require_number("limit", limit, 1, whole=True, or_none=False)
        require_number("rule", rule, 1, whole=True)
        require_mapping("`bindings` are values by variable", bindings, 'give a mapping, as `{"y": 3}`')
        return self._now().absence(fact, limit, rule, bindings or {})

    def explain_pattern(
        self, pattern: FactPattern, written: str, limit: int, rule: int | None, bindings: Mapping[str, Value] | None
    ) -> PatternAbsence:
        """The same for whatever fits a pattern and does not hold."""
        require_number("limit", limit, 1, whole=True, or_none=False)
        require_number("rule", rule, 1, whole=True)
        require_mapping("`bindings` are values by variable", bindings, 'give a mapping, as `{"y": 3}`')
        return self._now().pattern(pattern, written, limit, rule, bindings or {})

    def _now(self) -> _OfEpoch:
        if self._of_epoch is None or self._of_epoch.number != self._epoch():
            self._of_epoch = _OfEpoch(self._setting, self._epoch(), self._epoch, self._asking)
        return self._of_epoch


class _OfEpoch:
    """What is known about one epoch; the source of further levels of its proofs."""

    def __init__(self, setting: Setting, number: int, epoch: Callable[[], int], asking: Asking) -> None:
        self.number = number
        self._epoch = epoch
        self._asking = asking
        self._setting = setting
        self._reading = Reading(setting.backend, setting.dictionary)
        self._superseded = Superseded(setting.backend, self._reading)
        self._is_annotated = setting.is_annotated
        self._assembly = self._assemble()

    def _assemble(self) -> Assembly:
        steps, claim = self._steps()
        return Assembly(self._reading, steps, claim, self, self._chosen_among)

    def _steps(self) -> tuple[Steps, str]:
        setting = self._setting
        backend, reading = setting.backend, self._reading
        if setting.metric is not HEIGHT:
            claim = f"the least {setting.metric.name} of all proofs"
            if reading.equivalences:
                claim += " with the chains of equivalences that attain their levels"
            return ComputedSteps(backend, reading, setting.metric, "all", self._superseded), claim
        claim = LEAST if setting.is_global else LEAST_BY_STRATUM
        if self._is_annotated:
            claim = BY_RANKS if reading.ranked and not setting.is_global else claim
            return AnnotatedSteps(backend, setting.dictionary, reading, setting.is_global, self._superseded), claim
        scope: Scope = "all" if setting.is_global else "stratum"
        return ComputedSteps(backend, reading, HEIGHT, scope, self._superseded), claim

    # --- presence --------------------------------------------------------------------------------------------------

    def prove(self, fact: Fact, depth: int | None) -> Proof:
        if depth is not None and not (is_whole(depth) and depth >= 0):
            advice = "give a whole number, 0 or more, or None for all"
            raise ElastalogError([Diagnostic("E0708", f"{depth!r} is no depth", help=advice)])
        with self._asking():
            root = self._present(fact)
            try:
                return self._assembly.prove(root, depth)
            except ElastalogError as error:
                if not self._is_annotated or error.diagnostics[0].code != "E0740":
                    raise
            # The levels of facts that subsumption leaves say when they came, and what they came from may be gone in a
            # way that evaluating anew does not show: their heights are found from all derivations then.
            self._is_annotated = False
            self._assembly = self._assemble()
            return self._assembly.prove(root, depth)

    def explain(self, fact: Fact) -> Proof:
        return self.prove(fact, None)

    def derivations(self, fact: Fact) -> tuple[Proof, ...]:
        around = self._one_level(self._present(fact))
        found = sorted(range(len(around.heads)), key=around.sort_key)
        return tuple(self._assembly.by_step(around.facts[0], around.step(derivation)) for derivation in found)

    def _one_level(self, fact: WordFact) -> Neighbourhood:
        around = Neighbourhood(self._setting.backend, self._reading, "all", self._superseded)
        around.collect_derivations(fact)
        return around

    def proofs(self, fact: Fact) -> Iterator[Proof]:
        root = self._present(fact)
        around = Neighbourhood(self._setting.backend, self._reading, "all", self._superseded)
        around.collect([root])
        return Alternatives(around, self._reading, self._assembly.aggregate).of(root)

    def _present(self, fact: Fact) -> WordFact:
        self._require_epoch()
        words = self._reading.words(fact)
        is_there = words is not None and self._setting.backend.contains(words[0], np.array([words[1]], np.int32))[0]
        # A premise that was superseded can be gone down into.
        if words is None or not (is_there or self._assembly.is_superseded(words)):
            advice = "`why_not` (as a command: `whynot`) says what is missing for it"
            raise ElastalogError([Diagnostic("E0701", f"{fact} does not hold", help=advice)])
        return words

    def _require_epoch(self) -> None:
        if self._epoch() != self.number:
            message = f"this is an explanation of epoch {self.number}, and the session is at epoch {self._epoch()}"
            advice = "ask for a new explanation; of the old one, only what has been expanded can be read"
            raise ElastalogError([Diagnostic("E0709", message, help=advice)])

    # --- absence ---------------------------------------------------------------------------------------------------

    def absence(self, fact: Fact, limit: int, rule: int | None, bindings: Mapping[str, Value]) -> Absence:
        self._require_epoch()
        if self._reading.is_present(fact.relation, fact.values):
            advice = "`explain` says why"
            raise ElastalogError([Diagnostic("E0702", f"{fact} holds", help=advice)])
        program = self._setting.program
        rules, bound = self._restricted(fact.relation, rule, bindings)
        declared = program.relations[fact.relation]
        found = explain_absence(
            fact, rules, self._look_up, self._reading.ordinal, limit, bound, self, self._setting.backend.is_complete,
            competes=bool(declared.choices) or fact.relation in self._reading.subsumed,
        )  # fmt: skip
        words = self._reading.words(fact)
        is_given = words is not None and bool(
            self._setting.backend.is_explicit(words[0], np.array([words[1]], np.int32))[0]
        )
        is_derived = any(not i.failing for i in found.instantiations)
        return replace(found, notes=tuple(self._notes(fact, is_given or is_derived)), is_given=is_given)

    def pattern(
        self, pattern: FactPattern, written: str, limit: int, rule: int | None, bindings: Mapping[str, Value]
    ) -> PatternAbsence:
        self._require_epoch()
        rules, bound = self._restricted(pattern.relation, rule, bindings)
        present = self._reading.count(pattern)
        return explain_pattern(
            pattern, written, present, rules, self._look_up, self._reading.ordinal, limit, bound, self
        )

    def _restricted(
        self, relation: str, rule: int | None, bindings: Mapping[str, Value]
    ) -> tuple[tuple[Rule, ...], dict[str, Value]]:
        """The rules that are looked at, and the values given to their variables, as facts have them."""
        rules = tuple(r for r in self._setting.program.rules if r.head.relation == relation)
        rules = tuple(r for r in rules if not r.is_closure) if rule is None else (_chosen(relation, rules, rule),)
        return rules, {name: value_of_variable(rules, name, value) for name, value in bindings.items()}

    def _notes(self, fact: Fact, is_given: bool) -> Iterator[str]:
        """What keeps a fact away that rules may give."""
        program, declared = self._setting.program, self._setting.program.relations[fact.relation]
        if is_given:
            for other, key in holders(fact, declared, self._look_up):
                yield f"not chosen: {other} has the key {key}"
        if is_given or fact.relation in self._reading.ranked:
            what = "superseded by" if is_given else "there is a better one,"
            for other, rule in islice(dominating(fact, program, self._look_up, self._reading.ordinal), 1):
                yield f"{what} {other}: {rule.text}"
        if declared.is_equivalence:
            left, right = (self._class_size(fact.relation, value) for value in fact.values)
            yield f"{_in_class(fact.values[0], left)}, {_in_class(fact.values[1], right)}, and nothing connects them"

    def _class_size(self, relation: str, value: Value) -> int:
        return sum(1 for _ in self._look_up(relation, (value, None)))

    def _chosen_among(self, fact: Fact) -> int | None:
        if not self._setting.program.relations[fact.relation].choices:
            return None
        return candidates(fact, self._setting.program, self._look_up, self._reading.ordinal)

    def explain_absence(self, fact: Fact) -> Absence:
        with self._asking():
            return self.absence(fact, 5, None, {})

    def _look_up(self, relation: str, pattern: Pattern) -> Iterator[tuple[Value, ...]]:
        return self._reading.select(relation, pattern)


def _chosen(relation: str, rules: tuple[Rule, ...], number: int) -> Rule:
    for rule in rules:
        if rule.number_in_relation == number:
            return rule
    listed = "; ".join(f"{rule.number_in_relation}: {show_rule(rule)}" for rule in rules) or "none"
    raise ElastalogError([Diagnostic("E0710", f"`{relation}` has no rule {number}", help=f"its rules are: {listed}")])


def _in_class(value: Value, size: int) -> str:
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"{shown} is in a class of {size:,}" if size else f"{shown} is in no class"
