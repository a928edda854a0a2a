"""What a session or its store remembers of past epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from elastalog.backends.protocol import Matrix
from elastalog.debugging.answers import What
from elastalog.evaluation.changes import RuleTexts, Update
from elastalog.evaluation.epochs import EpochRecord
from elastalog.planning.logical import GIVEN, is_hidden_name
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import Pairs, Rows
from elastalog.storage.entries import JournalRecord
from elastalog.storage.history import equivalences_in, turns, turns_of_pair
from elastalog.storage.store import Store


class Past:
    """Reads the records of a session, or the journal of its store where there is one. `stored`: a block in which the
    files of the store stay where they are."""

    def __init__(
        self,
        records: Sequence[EpochRecord],
        stored: Callable[[], AbstractContextManager[Store | None]],
        epoch: Callable[[], int],
    ) -> None:
        self._records = records
        self._stored = stored
        self._epoch = epoch

    @property
    def oldest(self) -> int:
        """The earliest epoch from which every update is known."""
        with self._stored() as store:
            if store is not None:
                return store.first_epoch
        return self._records[0].epoch if self._records else self._epoch()

    def updates(self, after: int, until: int) -> list[Update]:
        """The updates of the epochs after one until another, as they took effect."""
        with self._stored() as store:
            if store is not None:
                return [explicit_update(record) for record in store.turned(after, until)]
        return [r.update for r in self._records if r.update is not None and after < r.epoch <= until]

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
                words = np.array([row], np.int32)
                all_turns = (
                    turns_of_pair(store, relation, words, after, until)
                    if relation in equivalences_in(store.state().layout)
                    else turns(store.turned(after, until), relation, words)
                )
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
