"""The past of a session or its store, as questions need it, with rules as elements of updates too.

Within a question, every rule that came or went since the earlier epoch is guarded, and its guard is an explicit fact
like any other (see `planning.transition`). The program of the question has the rules of the present epoch, under their
numbers, and behind them those that went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from elastalog.backends.protocol import GONE, Matrix
from elastalog.debugging.answers import What
from elastalog.evaluation.changes import RuleTexts, Update
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.rewriting import FACT, borrowed_program
from elastalog.planning.logical import GIVEN, guard_of, is_hidden_name
from elastalog.planning.transition import Transition, transition
from elastalog.program import Program, rule_texts, shown_rule, with_rules
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import Pairs, Rows
from elastalog.storage.entries import JournalRecord
from elastalog.storage.history import Turn, equivalences_in, turns, turns_of_pair
from elastalog.storage.store import Store


@dataclass(frozen=True, slots=True)
class RuleElements:
    """`texts`: the rules that came or went, by their numbers in `program`. `present`: those that are in force now.
    `events`: the numbers that each epoch removed and added."""

    program: Program
    texts: Mapping[int, str]
    present: frozenset[int]
    events: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]]

    @property
    def guards(self) -> dict[str, bool]:
        return {guard_of(number): number in self.present for number in self.texts}

    def fact_of(self, text: str) -> WordFact | None:
        """The guard of a rule by its text."""
        wanted = shown_rule(text)
        return next(((guard_of(n), (0,)) for n, known in self.texts.items() if shown_rule(known) == wanted), None)

    def text_of(self, fact: WordFact) -> str | None:
        """The rule that a fact guards, if it is a guard."""
        return next((shown_rule(text) for number, text in self.texts.items() if guard_of(number) == fact[0]), None)


def rule_elements(program: Program, changes: Sequence[tuple[int, RuleTexts]]) -> RuleElements:
    """Goes back from the present program through the changes of past epochs. A rule that is there several times has
    several numbers: the one that came last is the first to go."""
    own = rule_texts(program)
    there: dict[str, list[int]] = {}
    for number, text in enumerate(own, 1):
        there.setdefault(shown_rule(text), []).append(number)
    absent: dict[str, list[int]] = {}
    gone: list[str] = []
    texts: dict[int, str] = {}
    events: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for epoch, changed in reversed(changes):
        added, removed = [], []
        for text in changed.added:
            number = there[shown_rule(text)].pop()
            absent.setdefault(shown_rule(text), []).append(number)
            added.append(number)
            texts[number] = text
        for text in changed.removed:
            known = absent.get(shown_rule(text))
            if not known:  # otherwise it came back later, as the rule that it was
                gone.append(text)
                known = [len(own) + len(gone)]
            number = known.pop()
            there.setdefault(shown_rule(text), []).append(number)
            removed.append(number)
            texts[number] = text
        events[epoch] = tuple(removed), tuple(added)
    present = frozenset(number for number in texts if number <= len(own))
    return RuleElements(with_rules(program, gone), texts, present, events)


def _facts(numbers: Iterable[int]) -> dict[str, Matrix]:
    return {guard_of(number): FACT for number in numbers}


@contextmanager
def guarded(epochs: Epochs, rules: RuleElements, opened: OpenAnew) -> Iterator[Epochs]:
    """Epochs of the program with guards, in the present state. They are those of the session as long as what is kept of
    its facts means the same under that program; otherwise new ones are evaluated from the explicit facts."""
    backend = epochs.backend
    numbers = {number: number for number in range(1, len(backend.program.checked.rules) + 1)}
    meanwhile = transition(backend.program, rules.program.checked, numbers, frozenset(rules.texts))
    if meanwhile.anew.isdisjoint(backend.program.relations):
        with borrowed_program(backend, epochs.strategy, meanwhile, rules.guards):
            yield epochs
    else:
        yield opened(meanwhile, rules.guards)


OpenAnew: TypeAlias = Callable[[Transition, Mapping[str, bool]], Epochs]
"""Makes epochs of another program over the explicit facts of now, with the guards that are there."""


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a session, from its records, or from the journal of its store if it has one. `stored`: a block in
    which the files of the store stay in place. `guarded`: rules that came and went, as facts."""

    _records: Sequence[EpochRecord]
    _stored: Callable[[], AbstractContextManager[Store | None]]
    _epoch: Callable[[], int]
    guarded: RuleElements | None = None

    @property
    def oldest(self) -> int:
        """The earliest epoch from which every update is known."""
        with self._stored() as store:
            if store is not None:
                return store.first_epoch
        return self._records[0].epoch if self._records else self._epoch()

    def updates(self, after: int, until: int) -> list[Update]:
        """The updates of the epochs after one until another, as they took effect. Those of rules come last, which makes
        no difference to the sum."""
        events = {} if self.guarded is None else self.guarded.events
        changed = [numbers for epoch, numbers in sorted(events.items()) if after < epoch <= until]
        guards = [Update(_facts(removed), _facts(added)) for removed, added in changed]
        with self._stored() as store:
            if store is not None:
                return [*(explicit_update(record) for record in store.turned(after, until)), *guards]
        return [*(r.update for r in self._records if r.update is not None and after < r.epoch <= until), *guards]

    def gone(self, most_epochs: int, most_facts: int) -> list[Mapping[str, Matrix]]:
        """The facts of every relation that disappeared in each of the last epochs, of each relation the first ones."""
        until = self._epoch()
        after = max(self.oldest, until - most_epochs)
        with self._stored() as store:
            if store is None:
                sides = [record.changes for record in self._records if record.epoch > after]
                each = [{n: went for n, (_, went) in one.items() if not isinstance(went, Pairs)} for one in sides]
            else:
                each = [
                    {name: one.words[(one.was != GONE) & (one.level == GONE)] for name, one in record.changes.items()}
                    for record in store.turned(after, until)
                ]
        return [{name: np.asarray(rows)[:most_facts] for name, rows in went.items() if len(rows)} for went in each]

    def rules(self, after: int) -> list[tuple[int, RuleTexts]]:
        """The rules that the epochs after one have changed, for those that changed any, oldest first."""
        with self._stored() as store:
            if store is not None:
                entries = (record.entry for record in store.records(after, store.epoch))
                found = [(e.epoch, RuleTexts(e.removed_rules, e.added_rules)) for e in entries]
            else:
                found = [(record.epoch, record.rules) for record in self._records if record.epoch > after]
        return [(epoch, rules) for epoch, rules in found if rules]

    def turn(self, epoch: int, fact: WordFact) -> What | None:
        """What an epoch did to the presence of a fact."""
        return next((what for _, what in self._turns(fact, epoch - 1, epoch)), None)

    def last_turn(self, fact: WordFact) -> tuple[int, What] | None:
        """The epoch in which a fact last appeared or disappeared, if any is known."""
        found = self._turns(fact, self.oldest, self._epoch())
        return found[-1] if found else None

    def _turns(self, fact: WordFact, after: int, until: int) -> list[tuple[int, What]]:
        """The epochs after one until another in which a fact appeared or disappeared, oldest first."""
        relation, row = fact
        with self._stored() as store:
            if store is not None:
                all_turns = turns_in(store, fact, after, until)
                return [(turn.epoch, turn.what) for turn in all_turns if turn.what != "moved"]
        found: list[tuple[int, What]] = []
        for kept in self._records:
            if after < kept.epoch <= until and relation in kept.changes:
                came, went = kept.changes[relation]
                if _has(came, row):
                    found.append((kept.epoch, "appeared"))
                elif _has(went, row):
                    found.append((kept.epoch, "disappeared"))
        return found


def turns_in(store: Store, fact: WordFact, after: int, until: int) -> tuple[Turn, ...]:
    """The epochs of a store after one until another in which a fact appeared, disappeared or changed its level."""
    relation, words = fact[0], np.array([fact[1]], np.int32)
    if relation in equivalences_in(store.state().layout):
        return turns_of_pair(store, relation, words, after, until)
    return turns(store.turned(after, until), relation, words)


def explicit_update(record: JournalRecord) -> Update:
    """The update of a record: explicit facts are those of level 0, in declared relations."""
    deleted: dict[str, Matrix] = {}
    inserted: dict[str, Matrix] = {}
    for stored, changes in record.changes.items():
        relation = stored.removeprefix(GIVEN)
        if not is_hidden_name(relation):
            went = changes.words[(changes.was == 0) & (changes.level != 0)]
            came = changes.words[(changes.was != 0) & (changes.level == 0)]
            if len(went):
                deleted[relation] = went
            if len(came):
                inserted[relation] = came
    return Update(deleted, inserted, record.entry.source, record.entry.batch)


def _has(words: Rows, row: tuple[int, ...]) -> bool:
    if isinstance(words, Pairs):
        return words.has(row)
    return bool(len(words)) and bool((words == np.array(row)).all(axis=1).any())
