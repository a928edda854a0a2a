"""Questions about what updates broke, for one session."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from elastalog.debugging import faults
from elastalog.debugging.answers import Blame, Localisation, Suggestion, What
from elastalog.debugging.connections import ConnectingProofs
from elastalog.debugging.elements import Element, net_changes
from elastalog.debugging.laboratory import Laboratory, Switch, words_by_relation
from elastalog.debugging.oracles import Goals
from elastalog.debugging.polarity import dependencies, useful
from elastalog.debugging.search import Found, News, NoSolution, Task, search
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import Epochs
from elastalog.evaluation.update import Update
from elastalog.provenance.explain import Setting
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import Reading, WordFact

TIME_LIMIT = 60.0
"""Seconds that a search may take unless the user says otherwise."""

Written: TypeAlias = str | tuple[str, Any]
"""A fact as text or as relation and values; an element in the same ways, with `+` or `-` before it, or alone."""


class History(Protocol):
    """What a session knows of its past."""

    @property
    def oldest(self) -> int:
        """The earliest epoch from which every update is known."""

    def updates(self, after: int, until: int) -> list[Update]:
        """The updates of the epochs after one until another, as they took effect."""

    def turn(self, epoch: int, fact: WordFact) -> What | None:
        """What an epoch did to the presence of a fact."""

    def last_turn(self, fact: WordFact) -> tuple[int, What] | None:
        """The epoch in which a fact last appeared or disappeared, if any is known."""


@dataclass(frozen=True, slots=True)
class Question:
    """Faults between two epochs, and the net changes of explicit facts between them: whether each came or went."""

    unwanted: tuple[Fact, ...]
    missing: tuple[Fact, ...]
    first: int
    last: int
    changes: Mapping[WordFact, bool]


class Debugger:
    """Answers questions about the epochs of a session. `read_fact` checks facts as the user writes them; `undo` applies
    a suggestion."""

    def __init__(
        self,
        setting: Setting,
        epochs: Epochs,
        history: History,
        read_fact: Callable[[Any], tuple[str, tuple[Any, ...]]],
        undo: Callable[[Suggestion], Changes],
    ) -> None:
        self._setting = setting
        self._epochs = epochs
        self._history = history
        self._read_fact = read_fact
        self._undo = undo
        self._reading = Reading(setting.backend, setting.dictionary)

    # --- questions -------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[Written],
        missing: Sequence[Written],
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        news: News | None = None,
        is_baseline: bool = False,
    ) -> Localisation:
        """A smallest part of the update that alone shows all faults: applied to the earlier epoch."""
        question = self._question(unwanted, missing, epochs)
        with self._at(question.first):
            laboratory = self._laboratory(question, is_applied=False)
            goals = Goals(self._words(question.missing), self._words(question.unwanted))
            self._require_change(question, laboratory, is_applied=False)
            found, proofs, elements = self._search(question, laboratory, goals, (), {}, time_limit, news, is_baseline)
        if isinstance(found, NoSolution):
            raise InternalError("debugging", "the whole update does not show the faults that it showed")
        return Localisation(
            elements, True, found.why_not_proven is None, found.bound, found.why_not_proven, proofs, question.unwanted,
            question.missing, (question.first, question.last), len(question.changes), laboratory.seconds,
        )  # fmt: skip

    def suggest(
        self,
        unwanted: Sequence[Written],
        missing: Sequence[Written],
        rejected: Sequence[Written] = (),
        weights: Mapping[Any, float] | None = None,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        news: News | None = None,
        is_baseline: bool = False,
    ) -> Suggestion:
        """A smallest part of the update whose undoing removes all faults, while what is rejected stays applied."""
        question = self._question(unwanted, missing, epochs)
        kept = tuple(dict.fromkeys(self._element(question, element) for element in rejected))
        weight_of = self._weights(question, weights or {})
        with self._at(question.last):
            laboratory = self._laboratory(question, is_applied=True)
            goals = Goals(self._words(question.unwanted), self._words(question.missing))
            self._require_change(question, laboratory, is_applied=True)
            found, proofs, elements = self._search(
                question, laboratory, goals, kept, weight_of, time_limit, news, is_baseline
            )
        shown_kept = tuple(self._shown(question, kept))
        if isinstance(found, NoSolution):
            if not kept:
                raise InternalError("debugging", "undoing the whole update does not remove its faults")
            raise faults.nothing_left(shown_kept, found.is_proven)
        return Suggestion(
            elements, True, found.why_not_proven is None, found.bound, found.why_not_proven, proofs, question.unwanted,
            question.missing, (question.first, question.last), len(question.changes), laboratory.seconds, shown_kept,
            self._undo,
        )  # fmt: skip

    def blame(self, written: Written, time_limit: float | None = None, news: News | None = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and what in its update did that."""
        fact = Fact(*self._read_fact(written))
        words = self._reading.words(fact)
        turn = None if words is None else self._history.last_turn(words)
        if turn is None:
            if not self._hold([fact])[0]:
                raise faults.never_held(fact, self._history.oldest)
            return Blame(fact, "appeared", self._history.oldest, [], None)
        epoch, what = turn
        sides = ([fact], []) if what == "appeared" else ([], [fact])
        found = self.localise(*sides, (epoch - 1, epoch), time_limit, news)
        return Blame(fact, what, epoch, found.elements, found)

    # --- what is asked ---------------------------------------------------------------------------------------------

    def _question(
        self, unwanted: Sequence[Written], missing: Sequence[Written], epochs: tuple[int, int] | None
    ) -> Question:
        now, oldest = self._epochs.number, self._history.oldest
        first, last = (now - 1, now) if epochs is None else epochs
        if not oldest <= first < last <= now:
            raise faults.no_such_epochs(first, last, oldest, now)
        sides = [
            tuple(dict.fromkeys(Fact(*self._read_fact(fact)) for fact in ([side] if isinstance(side, str) else side)))
            for side in (unwanted, missing)
        ]
        if not sides[0] and not sides[1]:
            raise faults.no_faults()
        for fact in sides[0]:
            if fact in sides[1]:
                raise faults.both_ways(fact)
        return Question(sides[0], sides[1], first, last, net_changes(self._history.updates(first, last)))

    def _require_change(self, question: Question, laboratory: Laboratory, is_applied: bool) -> None:
        """Every fault must be one in the later epoch, and none in the earlier. The base is the later one if
        `is_applied`."""
        sides = [(fact, True) for fact in question.unwanted] + [(fact, False) for fact in question.missing]
        facts = [fact for fact, _ in sides]
        here = self._hold(facts)
        if question.last == question.first + 1:
            there = [held != self._has_turned(question.last, fact) for fact, held in zip(facts, here, strict=True)]
        else:
            with laboratory.flipped(range(len(laboratory.switches))):
                there = self._hold(facts)
        before, after = (there, here) if is_applied else (here, there)
        for (fact, is_unwanted), held, holds in zip(sides, before, after, strict=True):
            if holds != is_unwanted:
                raise faults.not_a_fault(fact, is_unwanted, question.last)
            if held == is_unwanted:
                raise faults.older_fault(fact, is_unwanted, question.first, question.last)

    def _has_turned(self, epoch: int, fact: Fact) -> bool:
        words = self._reading.words(fact)
        return words is not None and self._history.turn(epoch, words) is not None

    def _element(self, question: Question, written: Written) -> WordFact:
        """The fact of an element as the user writes it. An update does only one thing to a fact, so the sign can be
        left out."""
        sign: str | None = None
        if isinstance(written, str):
            text = written.strip()
            if text[:1] in ("+", "-"):
                sign, written = text[0], text[1:]
        elif written[0] in ("+", "-"):
            sign, written = written
        fact = Fact(*self._read_fact(written))
        words = self._reading.words(fact)
        came = None if words is None else question.changes.get(words)
        if words is None or came is None or (sign is not None and came != (sign == "+")):
            raise faults.not_in_update(f"{sign or ''}{fact}", question.first, question.last)
        return words

    def _weights(self, question: Question, weights: Mapping[Any, Any]) -> dict[WordFact, float]:
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

    def _laboratory(self, question: Question, is_applied: bool) -> Laboratory:
        """One switch for each element. `is_applied`: the base has the update, and flipping undoes."""
        ordered = sorted(question.changes.items(), key=lambda change: (change[0][0], self._reading.sort_key(change[0])))
        return Laboratory(self._epochs, tuple(Switch(fact, came != is_applied) for fact, came in ordered))

    def _words(self, facts: Iterable[Fact]) -> tuple[WordFact, ...]:
        found = [self._reading.words(fact) for fact in facts]
        return tuple(words for words in found if words is not None)

    def _hold(self, facts: Iterable[Fact]) -> list[bool]:
        return [self._reading.is_present(fact.relation, fact.values) for fact in facts]

    # --- search ----------------------------------------------------------------------------------------------------

    def _search(
        self,
        question: Question,
        laboratory: Laboratory,
        goals: Goals,
        kept: Collection[WordFact],
        weights: Mapping[WordFact, float],
        time_limit: float | None,
        news: News | None,
        is_baseline: bool,
    ) -> tuple[Found | NoSolution, tuple[Proof, ...], list[Element]]:
        """What was found, the proofs for it, and the elements that are flipped."""
        signs = dependencies(self._setting.backend.program, {switch.fact[0] for switch in laboratory.switches})
        allowed = tuple(switch for switch in laboratory.switches if switch.fact not in kept)
        switches = allowed
        if not is_baseline:
            absent, present = ([relation for relation, _ in side] for side in (goals.absent, goals.present))
            switches = tuple(allowed[i] for i in useful(allowed, signs, absent, present))
        while True:
            if not switches:
                return NoSolution(is_proven=True), (), []
            smaller = Laboratory(self._epochs, switches, laboratory.seconds)
            proofs = ConnectingProofs(self._setting, self._reading, goals)
            found = search(
                Task(
                    smaller,
                    self._setting,
                    signs,
                    goals,
                    [weights.get(switch.fact, 1.0) for switch in switches],
                    TIME_LIMIT if time_limit is None else time_limit,
                    news or (lambda _: None),
                    proofs.look,
                    is_baseline,
                )
            )
            if not smaller.has_met_no_state or len(switches) == len(allowed):
                break
            switches = allowed  # what seemed useless may lead past a state without a result
        if isinstance(found, NoSolution):
            return found, (), []
        flipped = [switches[i].fact for i in sorted(found.flipped)]
        return found, proofs.all(), self._shown(question, flipped)

    def _shown(self, question: Question, facts: Iterable[WordFact]) -> list[Element]:
        return [Element("+" if question.changes[fact] else "-", self._reading.fact(fact)) for fact in facts]
