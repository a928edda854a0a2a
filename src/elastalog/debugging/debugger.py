"""Questions about what updates broke, for one session."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np

from elastalog.debugging import faults
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.debugging.elements import Element, net_changes
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.laboratory import words_by_relation
from elastalog.debugging.oracles import Goals
from elastalog.debugging.parts import Parts
from elastalog.debugging.pursuit import Outcome, Plan, pursue
from elastalog.debugging.rules import GuardedHistory, History, OpenAnew, RuleElements, guarded, rule_elements
from elastalog.debugging.search import News, NoSolution
from elastalog.diagnostics.arguments import is_whole, listed, require_mapping, require_number, wrong_kind
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import Epochs
from elastalog.evaluation.update import Update
from elastalog.program import Program, single_rule
from elastalog.provenance.explain import Setting
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact

TIME_LIMIT = 60.0
"""Seconds that a search may take unless the user says otherwise."""

MOST_FACTS = 1_000
"""Facts as written that are remembered within an epoch."""

_FAULTS = 'write facts as in the language, `["path(1, 4)"]`, or as pairs, `[("path", (1, 4))]`'
_ELEMENTS = 'write elements as in a diff file: `["+edge(1, 2)"]`'

Written: TypeAlias = str | tuple[str, Any]
"""A fact as text or as relation and values; an element in the same ways, with `+` or `-` before it, or alone."""


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


P = ParamSpec("P")
Answer = TypeVar("Answer", Localisation, Suggestion)
Ask: TypeAlias = "Callable[Concatenate[Debugger, P], Answer]"


def _among_rules(ask: Ask[P, Answer]) -> Ask[P, Answer]:
    """A question to which the rules that came and went between its `epochs` are elements of the update, too."""

    @wraps(ask)
    def asked(debugger: Debugger, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        epochs: Any = kwargs.get("epochs")
        with debugger._with_rules(epochs) as knowing_rules:
            return ask(knowing_rules, *args, **kwargs)

    return asked


class Debugger:
    """Answers questions about the epochs of a session. `read_fact` checks facts as the user writes them; `undo` applies
    a suggestion; `open_anew` evaluates another program over the present facts. `rules`: those that are among the
    elements of updates; epochs and history must know their guards."""

    def __init__(
        self,
        program: Program,
        setting: Setting,
        epochs: Epochs,
        history: History,
        read_fact: Callable[[Any], tuple[str, tuple[Any, ...]]],
        undo: Callable[[Suggestion], Changes],
        open_anew: OpenAnew,
        rules: RuleElements | None = None,
    ) -> None:
        self._program = program
        self._setting = setting
        self._epochs = epochs
        self._history = history
        self._read_fact = read_fact
        self._undo = undo
        self._open_anew = open_anew
        self._rules = rules
        self._reading = Reading(setting.backend, setting.dictionary)
        self._investigations: dict[tuple[int, int], Investigation] = {}
        self._facts: dict[Any, Fact] = {}
        self._word_facts: dict[Fact, WordFact] = {}
        self._investigated = -1
        self._parts: Parts | None = None

    @contextmanager
    def _with_rules(self, epochs: tuple[int, int] | None) -> Iterator[Debugger]:
        """A debugger to which the rules that came and went since the first of two epochs are elements."""
        first, _ = _pair(epochs, self._epochs.number)
        changes = self._history.rules(first) if self._rules is None else []
        if not changes:
            yield self
            return
        rules = rule_elements(self._program, changes)
        with guarded(self._epochs, rules, self._open_anew) as inner:
            setting = replace(self._setting, program=rules.program.checked, backend=inner.backend)
            history = GuardedHistory(self._history, rules)
            yield Debugger(rules.program, setting, inner, history, self._read_fact, self._undo, self._open_anew, rules)

    # --- questions -------------------------------------------------------------------------------------------------

    @_among_rules
    def localise(
        self,
        unwanted: Sequence[Written],
        missing: Sequence[Written],
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        news: News | None = None,
        is_baseline: bool = False,
    ) -> Localisation:
        """A smallest part of the update that alone shows all faults: applied to the earlier epoch."""
        question = self._question(unwanted, missing, epochs)
        with self._at(question.last):
            self._require_change(question)
            goals = Goals(self._words(question.missing), self._words(question.unwanted))
            plan = Plan(goals, is_applied=False, is_baseline=is_baseline)
            outcome = self._pursue(question, plan, time_limit, news)
        found = outcome.found
        if isinstance(found, NoSolution):
            raise InternalError("debugging", "the whole update does not show the faults that it showed")
        return Localisation(
            self._shown(question, outcome.flipped), True, found.why_not_proven is None, found.bound,
            found.why_not_proven, outcome.proofs, question.unwanted, question.missing,
            (question.first, question.last), len(question.changes), outcome.seconds,
        )  # fmt: skip

    @_among_rules
    def suggest(
        self,
        unwanted: Sequence[Written],
        missing: Sequence[Written],
        rejected: Sequence[Written] = (),
        weights: Mapping[Any, float] | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        news: News | None = None,
        is_baseline: bool = False,
    ) -> Suggestion:
        """A smallest part of the update whose undoing removes all faults, while what is rejected stays applied."""
        question = self._question(unwanted, missing, epochs)
        elements = listed("rejected elements are given in a list", rejected, _ELEMENTS)
        kept = tuple(dict.fromkeys(self._element(question, element) for element in elements))
        weight_of = self._weights(question, weights or {})
        with self._at(question.last):
            self._require_change(question)
            goals = Goals(self._words(question.unwanted), self._words(question.missing))
            plan = Plan(goals, True, is_baseline, frozenset(kept), weight_of)
            outcome = self._pursue(question, plan, time_limit, news)
        shown_kept = tuple(self._shown(question, kept))
        found = outcome.found
        if isinstance(found, NoSolution):
            if not kept:
                raise InternalError("debugging", "undoing the whole update does not remove its faults")
            raise faults.nothing_left(shown_kept, found.is_proven)
        return Suggestion(
            self._shown(question, outcome.flipped), True, found.why_not_proven is None, found.bound,
            found.why_not_proven, outcome.proofs, question.unwanted, question.missing,
            (question.first, question.last), len(question.changes), outcome.seconds, shown_kept,
            self._undo,
        )  # fmt: skip

    def blame(self, written: Written, time_limit: float | None = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and what in its update did that."""
        fact = self._fact(written)
        words = self._reading.words(fact)
        turn = None if words is None else self._history.last_turn(words)
        if turn is None:
            if not self._hold([fact])[0]:
                raise faults.never_held(fact, self._history.oldest)
            return Blame(fact, "appeared", self._history.oldest, [], None)
        epoch, what = turn
        sides = ([fact], []) if what == "appeared" else ([], [fact])
        found = self.localise(*sides, epochs=(epoch - 1, epoch), time_limit=time_limit)
        return Blame(fact, what, epoch, found.elements, found)

    # --- what is asked ---------------------------------------------------------------------------------------------

    def _question(
        self, unwanted: Sequence[Written], missing: Sequence[Written], epochs: tuple[int, int] | None
    ) -> Question:
        now, oldest = self._epochs.number, self._history.oldest
        first, last = _pair(epochs, now)
        if not oldest <= first < last <= now:
            raise faults.no_such_epochs(first, last, oldest, now)
        sides = [
            tuple(dict.fromkeys(map(self._fact, facts_in(f"{name} facts are given in a list", side))))
            for name, side in (("unwanted", unwanted), ("missing", missing))
        ]
        if not sides[0] and not sides[1]:
            raise faults.no_faults()
        for fact in sides[0]:
            if fact in sides[1]:
                raise faults.both_ways(fact)
        return Question(sides[0], sides[1], first, last, self._investigation(first, last))

    def _fact(self, written: Written) -> Fact:
        """A fact as the user writes it, checked. The same ones are often asked about again."""
        try:
            # 1, 1.0 and True are equal, but not all of them are values of a column.
            key = written if isinstance(written, str) else (*written, tuple(map(type, written[1])))
            found = self._facts.get(key)
        except (TypeError, IndexError, KeyError):
            return Fact(*self._read_fact(written))  # no fact at all, as this will say, or one with values in a list
        if found is None:
            if len(self._facts) >= MOST_FACTS:
                self._forget_facts()
            found = self._facts[key] = Fact(*self._read_fact(written))
        return found

    def _forget_facts(self) -> None:
        self._facts.clear()
        self._word_facts.clear()

    def _investigation(self, first: int, last: int) -> Investigation:
        """What is known about the changes between two epochs. It is forgotten when an epoch is added: rows of the
        backend may have got other numbers."""
        now = self._epochs.number
        if self._investigated != now:
            self._investigations.clear()
            self._forget_facts()
            self._investigated = now
        found = self._investigations.get((first, last))
        if found is None:
            changes = net_changes(self._history.updates(first, last))
            previous = self._epochs.trial_of_previous() if (first, last) == (now - 1, now) else None
            if self._parts is None or self._parts.program is not self._epochs.backend.program:
                self._parts = Parts(self._epochs.backend.program)
            found = Investigation(
                self._epochs, self._setting.dictionary, self._reading, changes, previous, self._parts
            )  # fmt: skip
            self._investigations[first, last] = found
        return found

    def _require_change(self, question: Question) -> None:
        """Every fault must be one in the later epoch, which is in force, and none in the earlier."""
        sides = [(fact, True) for fact in question.unwanted] + [(fact, False) for fact in question.missing]
        facts = [fact for fact, _ in sides]
        after = self._hold(facts)
        if question.last == question.first + 1:
            before = [held != self._has_turned(question.last, fact) for fact, held in zip(facts, after, strict=True)]
        else:
            with question.investigation.in_first():
                before = self._hold(facts)
        for (fact, is_unwanted), held, holds in zip(sides, before, after, strict=True):
            if holds != is_unwanted:
                raise faults.not_a_fault(fact, is_unwanted, question.last)
            if held == is_unwanted:
                raise faults.older_fault(fact, is_unwanted, question.first, question.last)

    def _has_turned(self, epoch: int, fact: Fact) -> bool:
        words = self._word_fact(fact)
        return words is not None and self._history.turn(epoch, words) is not None

    def _element(self, question: Question, written: Written) -> WordFact:
        """The fact of an element as the user writes it, for a rule its guard. An update does only one thing to a fact,
        so the sign can be left out."""
        sign: str | None = None
        if isinstance(written, str):
            text = written.strip()
            if text[:1] in ("+", "-"):
                sign, written = text[0], text[1:]
        elif _is_signed(written):
            sign, written = written
        if isinstance(written, str) and ":-" in written:
            # Also as in diff files: `-rule: path(x, y) :- edge(x, y).`
            fact: Fact | str = single_rule(re.sub(r"^\s*rule\s*:(?!-)", "", written))
            words = None if self._rules is None else self._rules.fact_of(str(fact))
        else:
            fact = self._fact(written)
            words = self._reading.words(fact)
        came = None if words is None else question.changes.get(words)
        if words is None or came is None or (sign is not None and came != (sign == "+")):
            raise faults.not_in_update(f"{sign or ''}{fact}", question.first, question.last)
        return words

    def _weights(self, question: Question, weights: Mapping[Any, Any]) -> dict[WordFact, float]:
        require_mapping("weights are numbers by element", weights, 'give a mapping, as `{"+edge(1, 2)": 2}`')
        found = {}
        for element, weight in weights.items():
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not 0 < weight < math.inf:
                raise faults.bad_weight(element, weight)
            found[self._element(question, element)] = float(weight)
        return found

    # --- states ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _at(self, epoch: int) -> Iterator[None]:
        """Within the block the backend is in the state of an epoch."""
        if epoch == self._epochs.number:
            yield
            return
        since = net_changes(self._history.updates(epoch, self._epochs.number))
        gone = words_by_relation(fact for fact, came in since.items() if not came)
        with self._epochs.trial(Update(words_by_relation(fact for fact, came in since.items() if came), gone)):
            yield

    def _words(self, facts: Iterable[Fact]) -> tuple[WordFact, ...]:
        found = map(self._word_fact, facts)
        return tuple(words for words in found if words is not None)

    def _word_fact(self, fact: Fact) -> WordFact | None:
        """The words of a fact, None if a value occurs in no fact at all."""
        found = self._word_facts.get(fact)
        if found is None:
            found = self._reading.words(fact)
            if found is not None:
                self._word_facts[fact] = found
        return found

    def _hold(self, facts: Iterable[Fact]) -> list[bool]:
        contains = self._setting.backend.contains
        found = map(self._word_fact, facts)
        return [words is not None and bool(contains(words[0], np.array([words[1]], np.int32))[0]) for words in found]

    # --- answers ---------------------------------------------------------------------------------------------------

    def _pursue(self, question: Question, plan: Plan, time_limit: float | None, news: News | None) -> Outcome:
        require_number("time_limit", time_limit, 0)
        limit = TIME_LIMIT if time_limit is None else time_limit
        return pursue(
            question.investigation, plan, self._setting, self._reading, self._epochs, limit, news or (lambda _: None)
        )

    def _shown(self, question: Question, facts: Iterable[WordFact]) -> list[Element]:
        rules = self._rules
        return [
            Element("+" if came else "-", (rules and rules.text_of(fact)) or self._reading.fact(fact))
            for fact, came in ((fact, question.changes[fact]) for fact in facts)
        ]


def _is_signed(written: Any) -> bool:
    return isinstance(written, tuple | list) and len(written) == 2 and written[0] in ("+", "-")


def _pair(epochs: Any, now: int) -> tuple[int, int]:
    """The two epochs of a question: those given, or the last ones."""
    match epochs:
        case None:
            return now - 1, now
        case tuple() | list() if len(epochs) == 2 and all(map(is_whole, epochs)):
            return epochs[0], epochs[1]
    raise wrong_kind("`epochs` are two numbers", epochs, "give the earlier epoch and the later one, as `(1, 2)`")


def facts_in(told: str, given: Any) -> tuple[Any, ...]:
    """Faults as given: a fact alone, in either way to write it, or several. A fact alone is a tuple that begins with
    the bare name of a relation; a list, or a tuple that begins with a fact, holds several."""
    match given:
        case (str() as name, tuple() | list()) if isinstance(given, tuple) and "(" not in name:
            return (given,)
    return listed(told, given, _FAULTS)
