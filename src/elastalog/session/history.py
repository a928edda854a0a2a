"""What a session keeps of its epochs: records in memory, or everything in a store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np

from elastalog.analysis.program import Value
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.diagnostics.arguments import require_whole
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.evaluation.differences import Difference, Verification, compare, difference
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.stored import DurableEpochs, create_store, log_entry, restore, unmoved
from elastalog.evaluation.update import RuleTexts
from elastalog.program import Program, declarations_in
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary
from elastalog.storage import faults
from elastalog.storage.batches import Batches
from elastalog.storage.entries import LogEntry
from elastalog.storage.history import Turn, turns
from elastalog.storage.manifest import Options
from elastalog.storage.store import Store


class KeptEpochs(ABC):
    """The part of a session that looks back."""

    program: Program
    schemas: dict[str, Schema]
    _settings: dict[str, Any]
    _dictionary: Dictionary
    _backend: KernelBackend
    _epochs: Epochs
    _lock: threading.RLock
    _history: list[EpochRecord]
    _batches: Batches
    _store: Store | None
    _durable: DurableEpochs | None
    _is_read_only: bool

    @property
    @abstractmethod
    def epoch(self) -> int: ...

    @abstractmethod
    def fact(self, written: str | tuple[str, tuple[Value, ...]]) -> tuple[str, tuple[Value, ...]]: ...

    @abstractmethod
    def encode(self, name: str, rows: Any, schemas: Mapping[str, Schema] | None = None) -> np.ndarray: ...

    @abstractmethod
    def explicit(self, name: str) -> Relation: ...

    @abstractmethod
    def _another(self, program: Program, dictionary: Dictionary | None) -> Self:
        """A session with the same settings, still without facts."""

    def log(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch: of this session, or of the store, back to its retention."""
        if self._store is None:
            return tuple(log_entry(record, record.impact) for record in self._history)
        with self._lock, self._stored() as store:
            return store.log()

    def _keep_in(self, path: Path, options: Options) -> None:
        self._durable = create_store(
            path, self.program, self._epochs, self._backend, self._dictionary, options, self._history[-1]
        )
        self._store, self._batches = self._durable.store, self._durable.store.batches

    @property
    def recovery(self) -> tuple[Diagnostic, ...]:
        """What opening the store found and repaired after a crash: nothing, as a rule."""
        return () if self._store is None else tuple(self._store.discarded)

    def at(self, epoch: int) -> Self:
        """A read-only session of an earlier epoch, kept by the store back to its retention."""
        _require_epochs(epoch)
        with self._lock, self._stored() as store:
            state = store.state(epoch)
            text = state.program_text()
            is_same = text == self.program.tree.source.text
            program = self.program if is_same else Program.reopen(text, state.program_name)
            earlier = self._another(program, self._dictionary)
            restore(state, earlier._epochs, earlier._backend)
            earlier._is_read_only = True
            with unmoved(store.root):
                # A reader of its own: its past ends with its epoch, and closing it closes nothing else.
                earlier._store = Store.open(store.root, read_only=True, until=epoch)
            return earlier

    def diff(self, first: int, last: int) -> dict[str, Difference]:
        """What the epochs after one until another did together: facts that came and went, and those that have other
        levels. The other way round when `last` is the earlier one."""
        _require_epochs(first, last)
        with self._lock, self._stored() as store:
            return difference(store, first, last, self.schemas, self._dictionary)

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The rules that the epochs after one until another removed and added together. The other way round when `last`
        is the earlier one."""
        _require_epochs(first, last)
        entries = self.log()
        for epoch in (first, last):
            if not entries[0].epoch <= epoch <= entries[-1].epoch:
                path = None if self._store is None else self._store.root
                raise faults.epoch_unknown(path, epoch, entries[0].epoch, entries[-1].epoch, is_part=self._is_read_only)
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
        """What the program of one epoch declares (types, relations, directives) and that of another does not, printed,
        in order. Declarations only ever come, so there is none when `last` is the earlier one."""
        _require_epochs(first, last)
        with self._lock, self._stored() as store:
            before, after = (declarations_in(store.state(epoch).program_text()) for epoch in (first, last))
        known = set(before)
        return tuple(text for text in after if text not in known)

    def turns(self, fact: str | tuple[str, tuple[Value, ...]]) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level, oldest first, as far back as the store
        goes."""
        name, values = self.fact(fact)
        with self._lock, self._stored() as store:
            found = Reading(self._backend, self._dictionary).words(Fact(name, values))
            if found is None:
                return ()  # a value that no fact has ever had
            return turns(store.records(store.first_epoch, store.epoch), name, np.array([found[1]], np.int32))

    def verify(self) -> Verification:
        """Evaluates the program anew over the explicit facts, and compares all facts, levels and counts."""
        again = self._another(self.program, None)
        explicit = {name: self.explicit(name).to_arrow() for name in self.schemas}
        again._epochs.bootstrap({name: again.encode(name, table) for name, table in explicit.items()})
        return compare(self.schemas, self._dictionary, self._backend, again._dictionary, again._backend)

    @contextmanager
    def _stored(self) -> Iterator[Store]:
        """The store, to read history from. A reader looks again at what its files are now."""
        if self._store is None:
            raise faults.no_history()
        if not self._store.is_read_only:
            yield self._store
            return
        with unmoved(self._store.root):
            store = Store.open(self._store.root, read_only=True, until=self.epoch)
            store.require(self.epoch)  # its past may be gone by now
            yield store

    def _store_if_any(self) -> AbstractContextManager[Store | None]:
        """The store, as `_stored` gives it, or None."""
        return nullcontext() if self._store is None else self._stored()


def _require_epochs(*epochs: object) -> None:
    for epoch in epochs:
        require_whole("an epoch is a number", epoch, "give its number; `db.log()` has an entry for each")
