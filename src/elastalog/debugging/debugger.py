"""Questions about what updates broke, for one session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np

from elastalog.debugging.answers import Blame, Element, Localisation, Suggestion, net_changes
from elastalog.debugging.dependencies import Parts
from elastalog.debugging.history import OpenAnew, Past, RuleElements, guarded, rule_elements
from elastalog.debugging.investigation import Case, Investigation
from elastalog.debugging.questions import Asking, Elements, Inquiry, ReadFact, Sides, Written, not_repaired
from elastalog.debugging.repair import Ground, Plan, repair, search_update
from elastalog.debugging.sandbox import Goals, update_of
from elastalog.debugging.search import WHAT_MAY_HELP, Outcome
from elastalog.diagnostics.arguments import is_whole, require_number, wrong_kind
from elastalog.diagnostics.diagnostic import ElastalogError, InternalError, error
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import Epochs
from elastalog.program import Program
from elastalog.provenance.explain import Setting
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact

TIME_LIMIT = 60.0
"""Seconds that a search may take unless the user says otherwise."""

FEW_FAULTS = 10
"""Up to this many are looked for in what the last epoch changed; for more, the state before it is tried."""


@dataclass(frozen=True, slots=True)
class Question:
    """Faults between two epochs, and what is known about the net changes of explicit facts between them."""

    unwanted: tuple[Fact, ...]
    missing: tuple[Fact, ...]
    first: int
    last: int
    investigation: Investigation

    @property
    def changes(self) -> Mapping[WordFact, bool]:
        return self.investigation.changes

    @property
    def elements(self) -> Elements:
        return Elements(
            self.changes.get,
            lambda relation: (fact for fact in self.changes if fact[0] == relation),
            lambda _, element: error("E1005", element=element, first=self.first, last=self.last),
        )


Answer = TypeVar("Answer", Localisation, Suggestion)
Ask: TypeAlias = "Callable[[Debugger, Inquiry], Answer]"


def _among_rules(ask: Ask[Answer]) -> Ask[Answer]:
    """A question to which the rules that came and went between its `epochs` are elements of the update, too."""

    @wraps(ask)
    def with_rules(debugger: Debugger, asked: Inquiry) -> Answer:
        with debugger._with_rules(asked.epochs) as knowing_rules:
            return ask(knowing_rules, asked)

    return with_rules


@dataclass(eq=False)
class Debugger:
    """Answers questions about the epochs of a session. `_read_fact` checks facts as users write them; `_undo` applies
    a suggestion; `_open_anew` evaluates another program over the present facts. `_rules`: those among the elements of
    updates; epochs and history must know their guards."""

    _program: Program
    _setting: Setting
    _epochs: Epochs
    _history: Past
    _read_fact: ReadFact
    _undo: Callable[[Suggestion], Changes]
    _open_anew: OpenAnew
    _rules: RuleElements | None = None

    def __post_init__(self) -> None:
        self._reading = Reading(self._setting.backend, self._setting.dictionary)
        self._investigations: dict[tuple[int, int], Investigation] = {}
        self._asking = Asking(self._setting.backend, self._reading, self._read_fact, self._rules)
        self._investigated = -1
        self._known_case: Case | None = None
        self._ground = Ground(self._case())

    @contextmanager
    def _with_rules(self, epochs: tuple[int, int] | None) -> Iterator[Debugger]:
        """A debugger to which the rules that came and went since the first of two epochs are elements."""
        first, _ = _pair(epochs, self._epochs.number)
        changed = self._history.rules(first) if self._rules is None else []
        changes = [(epoch, rules.alone) for epoch, rules in changed if rules.alone]
        if not changes:
            yield self
            return
        rules = rule_elements(self._program, changes)
        with guarded(self._epochs, rules, self._open_anew) as inner:
            setting = replace(self._setting, program=rules.program.checked, backend=inner.backend)
            history = replace(self._history, guarded=rules)
            yield replace(self, _program=rules.program, _setting=setting, _epochs=inner, _history=history, _rules=rules)

    # --- questions -------------------------------------------------------------------------------------------------

    @_among_rules
    def localise(self, asked: Inquiry) -> Localisation:
        """A smallest part of the update that alone shows all faults: applied to the earlier epoch."""
        question = self._question(asked)
        with self._at(question.last):
            self._require_change(question)
            goals = Goals(self._asking.words(question.missing), self._asking.words(question.unwanted))
            plan = Plan(goals, is_applied=False, is_baseline=asked.is_baseline)
            outcome = self._search(question, plan, asked)
        if outcome.flipped is None:
            raise self._unrepeatable(question, "the whole update does not show the faults that it showed")
        return Localisation(**self._told(question, outcome))

    @_among_rules
    def suggest(self, asked: Inquiry) -> Suggestion:
        """A smallest part of the update whose undoing removes all faults, while what is rejected stays applied."""
        question = self._question(asked)
        with self._at(question.last):
            self._require_change(question)
            kept = self._asking.rejected(asked.rejected, question.elements)
            weight_of = self._asking.weights(asked.weights or {}, question.elements)
            unwanted, missing = self._asking.words(question.unwanted), self._asking.words(question.missing)
            goals = Goals(unwanted, missing, tuple(asked.patterns))
            plan = Plan(goals, frozenset(kept), weight_of, is_baseline=asked.is_baseline)
            outcome = self._search(question, plan, asked)
        shown_kept = tuple(self._shown(question, kept))
        if outcome.flipped is None:
            told, why = ", ".join(map(str, shown_kept)) or None, outcome.found.why_not_proven
            if why is not None:
                less = ", or reject less" if kept else ""
                raise error("E1006.open", rejected=told, why=why, more=WHAT_MAY_HELP[why], less=less)
            if asked.patterns and not kept:
                raise error("E1006.pattern")
            if not kept:
                raise self._unrepeatable(question, "undoing the whole update does not remove its faults")
            raise error("E1006", rejected=told)
        return Suggestion(**self._told(question, outcome), rejected=shown_kept, undo=self._undo)

    def repair(self, asked: Inquiry, candidates: Mapping[WordFact, bool]) -> Suggestion:
        """A smallest set of changes of explicit facts that removes all faults, whenever the facts came (see `repair`).
        The missing facts must have words."""
        epoch = self._epochs.number
        self._follow(epoch)
        sides = self._asking.sides(asked.unwanted, asked.missing)
        for facts, is_unwanted in zip(sides, (True, False), strict=True):
            for fact, holds in zip(facts, self._asking.hold(facts), strict=True):
                if holds != is_unwanted:
                    raise _no_fault(fact, is_unwanted, epoch)
        elements = self._over_facts(candidates, bool(sides[0]))
        kept = self._asking.rejected(asked.rejected, elements)
        weight_of = self._asking.weights(asked.weights or {}, elements)
        goals = Goals(self._asking.words(sides[0]), self._asking.words(sides[1]), tuple(asked.patterns))
        news, seconds = asked.on_progress or (lambda _: None), _limit(asked.time_limit)
        outcome = repair(self._case(), self._ground, Plan(goals, frozenset(kept), weight_of), candidates, seconds, news)
        if outcome.flipped is None:
            raise not_repaired(*sides, tuple(map(self._reading.fact, kept)), outcome.found.why_not_proven)
        changed, kept_elements = (
            [Element("+" if elements.came(fact) else "-", self._reading.fact(fact)) for fact in facts]
            for facts in (sorted(outcome.flipped, key=lambda fact: (fact[0], self._reading.sort_key(fact))), kept)
        )
        size = self._ground.size if sides[0] else len(candidates)
        told = _told(changed, outcome, sides, (0, epoch), size)
        return Suggestion(**told, rejected=tuple(kept_elements), undo=self._undo, over="facts")

    def _over_facts(self, candidates: Mapping[WordFact, bool], is_any: bool) -> Elements:
        """The candidates, which may be deleted if they are there and inserted if not; and, if `is_any`, all explicit
        facts."""

        def came(fact: WordFact) -> bool | None:
            known = candidates.get(fact)
            if known is None and is_any:
                return bool(self._setting.backend.is_explicit(fact[0], np.array([fact[1]], np.int32))[0]) or None
            return known

        def of_relation(relation: str) -> Iterator[WordFact]:
            yield from (fact for fact in candidates if fact[0] == relation)
            if is_any and (explicit := self._ground.explicit.get(relation)) is not None:
                yield from ((relation, tuple(row)) for row in explicit.tolist())

        def refuse(relation: str | None, element: str) -> ElastalogError | None:
            # Anything else stays as it is anyway; that a derived fact does can't be had by naming it.
            is_given = relation is None or self._program.checked.is_given(relation)
            return None if is_given else error("E0715", element=element)

        return Elements(came, of_relation, refuse, is_any_sign=True)

    def blame(self, written: Written, time_limit: float | None = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and what in its update did that."""
        fact = self._asking.fact(written)
        words = self._reading.words(fact)
        turn = None if words is None else self._history.last_turn(words)
        if turn is None:
            if not self._asking.hold([fact])[0]:
                oldest = self._history.oldest
                since = "" if oldest <= 1 else f" since epoch {oldest}, as far back as is known"
                raise error("E1008", fact=fact, since=since)
            return Blame(fact, "appeared", self._history.oldest, [], None)
        epoch, what = turn
        sides = ([fact], []) if what == "appeared" else ([], [fact])
        found = self.localise(Inquiry(*sides, epochs=(epoch - 1, epoch), time_limit=time_limit))
        return Blame(fact, what, epoch, found.elements, found)

    # --- what is asked ---------------------------------------------------------------------------------------------

    def _question(self, asked: Inquiry) -> Question:
        epoch, oldest = self._epochs.number, self._history.oldest
        first, last = _pair(asked.epochs, epoch)
        if not oldest <= first < last <= epoch:
            key = "E1004" if epoch > oldest else "E1004.first"
            raise error(key, first=first, last=last, oldest=oldest, now=epoch)
        sides = self._asking.sides(asked.unwanted, asked.missing)
        return Question(*sides, first, last, self._investigation(first, last))

    def _investigation(self, first: int, last: int) -> Investigation:
        """What is known about the changes between two epochs. A new epoch makes it void: rows of the backend may have
        other numbers."""
        epoch = self._epochs.number
        self._follow(epoch)
        found = self._investigations.get((first, last))
        if found is None:
            changes = net_changes(self._history.updates(first, last))
            previous = self._epochs.trial_of_previous() if (first, last) == (epoch - 1, epoch) else None
            found = self._investigations[first, last] = Investigation(self._case(), changes, previous)
        return found

    def _follow(self, epoch: int) -> None:
        """Forgets what is known about other epochs."""
        if self._investigated != epoch:
            self._investigations.clear()
            self._ground = Ground(self._case())
            self._investigated = epoch

    def _case(self) -> Case:
        program = self._epochs.backend.program
        if self._known_case is None or self._known_case.parts.program is not program:
            self._known_case = Case(self._epochs, self._setting, self._reading, Parts(program))
        return self._known_case

    def _require_change(self, question: Question) -> None:
        """Every fault must be one in the later epoch, which is in force, and none in the earlier."""
        sides = [(fact, True) for fact in question.unwanted] + [(fact, False) for fact in question.missing]
        facts = [fact for fact, _ in sides]
        after = self._asking.hold(facts)
        if question.last == question.first + 1 and len(facts) <= FEW_FAULTS:
            words = map(self._reading.words, facts)
            turns = [known is not None and self._history.turn(question.last, known) is not None for known in words]
            before = [held != has_turned for held, has_turned in zip(after, turns, strict=True)]
        else:
            with question.investigation.in_first():
                before = self._asking.hold(facts)
        for (fact, is_unwanted), held, holds in zip(sides, before, after, strict=True):
            if holds != is_unwanted:
                raise _no_fault(fact, is_unwanted, question.last)
            if held == is_unwanted:
                was = "held already" if is_unwanted else "did not hold either"
                raise error("E1002", fact=fact, was=was, first=question.first, last=question.last)

    # --- states ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _at(self, epoch: int) -> Iterator[None]:
        """Within the block the backend is in the state of an epoch."""
        if epoch == self._epochs.number:
            yield
            return
        since = net_changes(self._history.updates(epoch, self._epochs.number))
        came, went = ([fact for fact in since if since[fact] == has_come] for has_come in (True, False))
        with self._epochs.trial(update_of(came, went)):
            yield

    # --- answers ---------------------------------------------------------------------------------------------------

    def _search(self, question: Question, plan: Plan, asked: Inquiry) -> Outcome:
        news = asked.on_progress or (lambda _: None)
        return search_update(question.investigation, plan, _limit(asked.time_limit), news)

    def _unrepeatable(self, question: Question, otherwise: str) -> ElastalogError | InternalError:
        """The error that applying or undoing the update once more does not give the faults of its epochs. The only
        reason is that derivations get other numbers."""
        facts = (*question.unwanted, *question.missing)
        if self._case().parts.are_numbered(fact.relation for fact in facts):
            return error("E1010", facts=", ".join(map(str, facts)))
        return InternalError("debugging", otherwise)

    def _told(self, question: Question, outcome: Outcome) -> dict[str, Any]:
        sides, epochs = (question.unwanted, question.missing), (question.first, question.last)
        return _told(self._shown(question, outcome.flipped or ()), outcome, sides, epochs, len(question.changes))

    def _shown(self, question: Question, facts: Iterable[WordFact]) -> list[Element]:
        rules = self._rules
        return [
            Element("+" if came else "-", (rules and rules.text_of(fact)) or self._reading.fact(fact))
            for fact, came in ((fact, question.changes[fact]) for fact in facts)
        ]


def _told(
    elements: list[Element], outcome: Outcome, sides: Sides, epochs: tuple[int, int], size: int
) -> dict[str, Any]:
    """What every answer tells."""
    found = outcome.found
    return {
        "elements": elements, "minimum": found.why_not_proven is None, "bound": found.bound,
        "why_not_proven": found.why_not_proven, "proofs": outcome.proofs, "unwanted": sides[0], "missing": sides[1],
        "epochs": epochs, "update_size": size, "seconds": outcome.seconds,
    }  # fmt: skip


def _no_fault(fact: Fact, is_unwanted: bool, epoch: int) -> ElastalogError:
    """The fact is as it should be."""
    return error("E1001.unwanted" if is_unwanted else "E1001.missing", fact=fact, epoch=epoch)


def _limit(given: float | None) -> float:
    """The seconds that a search may take."""
    require_number("time_limit", given, 0)
    return TIME_LIMIT if given is None else given


def _pair(epochs: Any, epoch: int) -> tuple[int, int]:
    """The two epochs of a question: those given, or the last ones."""
    match epochs:
        case None:
            return epoch - 1, epoch
        case tuple() | list() if len(epochs) == 2 and all(map(is_whole, epochs)):
            return epochs[0], epochs[1]
    raise wrong_kind("`epochs` are two numbers", epochs, "give the earlier epoch and the later one, as `(1, 2)`")
