"""The history of a session: records in memory, or everything in a store."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from elastalog import late
from elastalog.backends.protocol import GONE, ChangedWords
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.changes import RuleTexts, Update, net_of
from elastalog.evaluation.epochs import EpochRecord
from elastalog.program import Program, declarations_in
from elastalog.provenance.fact import Fact
from elastalog.relations.pairs import Rows
from elastalog.session.materialisation import Materialisation
from elastalog.storage import errors
from elastalog.storage.entries import Batches, BatchNote, LogEntry, epoch_in_force, require_epochs
from elastalog.storage.manifest import RETENTION, Options

if TYPE_CHECKING:
    from elastalog.debugging.history import Past
    from elastalog.evaluation import differences, stored
    from elastalog.evaluation.differences import Differences
    from elastalog.evaluation.stored import DurableEpochs
    from elastalog.relations.words import Dictionary
    from elastalog.storage import fetching, history
    from elastalog.storage import store as stores
    from elastalog.storage.filesystem import FileSystem
    from elastalog.storage.history import Turn
    from elastalog.storage.state import StoredState
    from elastalog.storage.store import Store
else:  # only sessions with a store need them
    differences = late.module("elastalog.evaluation.differences")
    history = late.module("elastalog.storage.history")
    stored = late.module("elastalog.evaluation.stored")
    fetching = late.module("elastalog.storage.fetching")
    stores = late.module("elastalog.storage.store")

MOST_FACTS = 1_000_000
"""Changed facts that are remembered without a store, besides those of the last epoch."""


class History:
    """The history of a materialisation. `records`: its latest `retention` epochs in memory, with at most `MOST_FACTS`
    changed facts; with a store, only the last. `batches`: those that have been applied. A reader has a store that it
    does not write, and nothing `durable`."""

    def __init__(
        self,
        materialisation: Materialisation,
        store: Store | None = None,
        retention: int = RETENTION,
        *,
        is_as_stored: bool = True,
    ) -> None:
        self._materialisation = materialisation
        self._retention = retention
        self._remembered = 0
        self.records: deque[EpochRecord] = deque()
        self.store: Store | None = None
        self.batches = Batches()
        self.durable: DurableEpochs | None = None
        if store is not None:
            self._take(store, is_as_stored=is_as_stored)

    def _take(self, store: Store, *, is_as_stored: bool = True) -> None:
        self.store, self.batches = store, store.batches
        if not store.is_read_only:
            now = self._materialisation
            self.durable = stored.DurableEpochs(now.epochs, now.dictionary, store, is_as_stored=is_as_stored)

    def keep_in(self, path: Path, options: Options, files: FileSystem | None = None) -> None:
        """Makes a store of the first epoch, written through `files` if given; the following epochs are added to it."""
        now = self._materialisation
        first = self.records[-1]
        self._take(stored.create_store(path, now.program, now.epochs, now.dictionary, options, first, files))

    @property
    def past(self) -> Past:
        """The past epochs, in the form that questions about them and `undoing` need."""
        from elastalog.debugging.history import Past  # most sessions are never asked

        return Past(self.records, self.stored_if_any, lambda: self._materialisation.epoch)

    @property
    def is_read_only(self) -> bool:
        return self.store is not None and self.store.is_read_only

    def add(self, record: EpochRecord, update: Update) -> None:
        """Adds an epoch that has just been committed, unless it was added already; the rules are those of then."""
        if update.rules is not None:
            self._materialisation.follow(update.rules.after)
        if update.batch is not None:
            self.batches.add(update.source, update.batch, update.digest)
        records, size = self.records, record.deleted + record.inserted + record.impact
        if not records or records[-1] is not record:
            self._remembered += size
            records.append(record)
        most = 1 if self.durable is not None else self._retention + 1  # the store has the others
        while len(records) > most or self._remembered - size > MOST_FACTS:
            gone = records[0]
            if gone.update is not None:
                self._remembered -= gone.deleted + gone.inserted + gone.impact
            records.popleft()

    def note_batch(self, update: Update) -> None:
        """Notes a batch that changed nothing: there is no epoch, but the batch is known from now on."""
        if update.batch is None:
            return
        if self.store is not None:
            self.store.note_batch(BatchNote(update.source, update.batch, update.digest))
        self.batches.add(update.source, update.batch, update.digest)

    def is_made_for(self, program: Program) -> bool:
        """Whether the store, if there is one, takes a program for its own."""
        return self.store is None or stored.is_made_for(self.store.made_for, program)

    def close(self) -> None:
        """Releases the store, if there is one."""
        if self.store is not None:
            self.store.close()

    @property
    def oldest(self) -> int:
        """The earliest epoch that is known."""
        if self.store is not None:
            return self.store.first_epoch
        return self.records[0].epoch

    # --- looking back ----------------------------------------------------------------------------------------------

    def log(self) -> tuple[LogEntry, ...]:
        """The entries of all epochs, oldest first."""
        if self.store is None:
            return tuple(stored.log_entry(record, record.impact) for record in self.records)
        with self._materialisation.lock, self._stored() as store:
            return store.log()

    def epoch_at(self, moment: int | date | str) -> int:
        """The epoch with a number, or the one that was current at a time."""
        if isinstance(moment, date | str):
            return epoch_in_force(self.log(), moment)
        require_epochs(moment)
        return moment

    def net_changes(self, epoch: int) -> ChangedWords:
        """The net facts inserted and deleted by the epochs after one."""
        require_epochs(epoch)
        now = self._materialisation
        if self.store is not None:
            with self._stored() as store:
                return differences.net_words(store, epoch, now.epoch, now.schemas)
        oldest = self.records[0].epoch
        if not oldest <= epoch <= now.epoch:
            raise errors.epoch_unknown(None, epoch, oldest, now.epoch)
        return net_of(_sides(record.changes) for record in self.records if record.epoch > epoch)

    def back_up(self, to: Path, files: FileSystem | None = None) -> int:
        """Copies the store into a folder, through `files` if given."""
        with self._materialisation.lock, self._stored() as store:
            from elastalog.storage.administration import back_up

            return back_up(store.root, to, files)

    def at(self, moment: int | date | str) -> tuple[Materialisation, History]:
        """An earlier epoch and its own history. Both are read-only; closing them closes nothing else."""
        epoch = self.epoch_at(moment)
        now = self._materialisation
        with now.lock, self._stored() as store:
            earlier = self._restored(store.state(epoch), now.dictionary)
            with stored.unmoved(store.root):
                return earlier, History(earlier, stores.Store.open(store.root, read_only=True, until=epoch))

    def later(self) -> tuple[Materialisation, History] | None:
        """The latest epoch of a store that another process writes; None if it is this one."""
        now = self._materialisation
        if self.store is None or not self.store.is_read_only or self.store.looks_no_further:
            raise ElastalogError.of("E0815")
        fetching.fetch_again(self.store.root)
        with stored.unmoved(self.store.root):
            store = stores.Store.open(self.store.root, read_only=True)
            if store.epoch == now.epoch:
                return None
            latest = self._restored(store.state(), None)
            return latest, History(latest, store)

    def _restored(self, state: StoredState, dictionary: Dictionary | None) -> Materialisation:
        """What the store has of an epoch, with a dictionary of its own unless one is given."""
        now, text = self._materialisation, state.program_text()
        is_same = text == now.program.tree.source.text
        program = now.program if is_same else Program.reopen(text, state.program_name)
        found = now.another(program, dictionary, history.equivalences_in(state.layout))
        stored.restore(state, found.epochs, found.dictionary if dictionary is None else None)
        return found

    def diff(self, first: int, last: int) -> Differences:
        """The net effect of the epochs after one up to another, or its inverse."""
        require_epochs(first, last)
        now = self._materialisation
        with now.lock, self._stored() as store:
            found = differences.difference(store, first, last, now.schemas, now.dictionary)
        rules = self.changed_rules(first, last)
        found.added_rules, found.removed_rules = rules.added, rules.removed
        declared = self.added_declarations(first, last)
        found.added_declarations = tuple(text for text in declared if text not in rules.added)
        return found

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The net rules and directives removed and added by the epochs after one up to another, or the inverse."""
        require_epochs(first, last)
        entries = self.log()
        for epoch in (first, last):
            if not entries[0].epoch <= epoch <= entries[-1].epoch:
                if self.store is None:
                    raise errors.epoch_unknown(None, epoch, entries[0].epoch, entries[-1].epoch)
                with self._stored() as store:
                    store.require(epoch)
        if last < first:
            back = self.changed_rules(last, first)
            return RuleTexts(back.added, back.removed)
        number: Counter[str] = Counter()
        for entry in entries:
            if first < entry.epoch <= last:
                number.update(entry.added_rules)
                number.subtract(entry.removed_rules)
        removed = tuple(rule for rule in number for _ in range(-number[rule]))
        return RuleTexts(removed, tuple(rule for rule in number for _ in range(number[rule])))

    def added_declarations(self, first: int, last: int) -> tuple[str, ...]:
        """What the program of one epoch declares and that of another does not, as text, in order."""
        require_epochs(first, last)
        with self._materialisation.lock, self._stored() as store:
            before, after = (declarations_in(store.state(epoch).program_text()) for epoch in (first, last))
        known = set(before)
        return tuple(text for text in after if text not in known)

    def history(self, fact: Fact) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level, oldest first; none of a fact that has
        always been as it is."""
        from elastalog.debugging.history import turns_in
        from elastalog.provenance.reading import Reading

        now = self._materialisation
        with now.lock, self._stored() as store:
            found = Reading(now.backend, now.dictionary).words(fact)
            if found is None:  # a value that no fact has ever had is in none
                return ()
            turns = turns_in(store, found, store.first_epoch, store.epoch)
            if turns and turns[0].was != GONE and store.first_epoch == 1:
                return history.Turn(store.log()[0], "appeared", GONE, turns[0].was), *turns
            return turns

    @contextmanager
    def _stored(self) -> Iterator[Store]:
        """The store, to read history from. A reader first looks for files written since."""
        if self.store is None:
            raise errors.no_history()
        if not self.store.is_read_only:
            yield self.store
            return
        with stored.unmoved(self.store.root):
            epoch = self._materialisation.epoch
            store = stores.Store.open(self.store.root, read_only=True, until=epoch)
            store.require(epoch)  # its past may be gone by now
            yield store

    def stored_if_any(self) -> AbstractContextManager[Store | None]:
        """The store, for a block in which its files are kept, or None."""
        return nullcontext() if self.store is None else self._stored()


def _sides(changes: ChangedWords) -> tuple[Mapping[str, Rows], Mapping[str, Rows]]:
    """The deleted and the inserted facts, by relation."""
    return {name: went for name, (_, went) in changes.items()}, {name: came for name, (came, _) in changes.items()}
