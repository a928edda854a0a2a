"""Epochs in a store: how they get there and come back.

The state is stored as it is, levels and counts of hidden relations included, so that opening evaluates nothing.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.costs import CostModel
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.strategies.protocol import Strategy
from elastalog.planning.logical import LogicalProgram
from elastalog.program import Program
from elastalog.relations.words import Dictionary
from elastalog.storage import faults
from elastalog.storage.entries import JournalRecord, LogEntry, StratumEntry, impact_of
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE, POINTER, Options
from elastalog.storage.state import StoredState
from elastalog.storage.store import Store, refuse_existing

log = logging.getLogger("elastalog.storage")

KEPT = ("elastic", "recompute")
"""The strategies whose state a store keeps."""


class DurableEpochs:
    """Ties the epochs of a backend to a store: each is in the store before it is in force."""

    def __init__(self, epochs: Epochs, backend: KernelBackend, dictionary: Dictionary, store: Store) -> None:
        self.store = store
        self._epochs = epochs
        self._backend = backend
        self._dictionary = dictionary
        self._hidden = {name: stored.is_hidden for name, stored in backend.program.relations.items()}
        epochs.before_commit = self._store

    def _store(self, record: EpochRecord) -> None:
        changes = self._backend.state_changes()
        entry = log_entry(record, impact_of(changes, self._hidden))
        strata = [stratum.stratum for stratum in record.work.strata]
        learnt = _learnt(self._epochs.strategy, strata)
        self.store.append(JournalRecord(entry, changes, learnt=learnt, **self.store.news_of(self._dictionary)))

    def after_commit(self) -> None:
        """Writes a snapshot when one is due. The epoch is safe already: when the snapshot cannot be written, the
        journal goes on."""
        if self.store.is_snapshot_due:
            try:
                self.store.write_snapshot(self._dictionary, self._backend.state)
            except ElastalogError as error:
                log.warning("no snapshot of epoch %d could be written: %s", self.store.epoch, error)


def create_store(
    path: Path,
    program: Program,
    epochs: Epochs,
    backend: KernelBackend,
    dictionary: Dictionary,
    options: Options,
    record: EpochRecord,
) -> DurableEpochs:
    """Makes a store of the first epoch."""
    impact = sum(backend.size(name) for name, stored in backend.program.relations.items() if not stored.is_hidden)
    store = Store.create(
        path, program.tree.source.text, options, layout_of(backend.program), dictionary, backend.state,
        log_entry(record, impact), _learnt(epochs.strategy, None),
    )  # fmt: skip
    return DurableEpochs(epochs, backend, dictionary, store)


def refuse_to_create(path: Path, strategy: str) -> None:
    """Raises ElastalogError, before any work is done, when no store can be made in a folder or for a strategy."""
    if strategy not in KEPT:
        raise faults.strategy_not_kept(strategy, KEPT)
    refuse_existing(path)


def is_store(path: Path) -> bool:
    """Whether a store is in a folder, whatever its state."""
    return (path / POINTER).exists()


def stored_program(
    store: Store, program: Program | None, strategy: str | None, levels: str | None
) -> tuple[Program, Options]:
    """The program and the options of a store, which must be those given, if any are."""
    stored = Program.parse(store.program_text(), str(store.root / store.manifest.program.name))
    if program is not None and program.tree.source.text != stored.tree.source.text:
        raise faults.other_program(store.root)
    options = store.manifest.options
    for option, given in (("strategy", strategy), ("levels", levels)):
        kept = getattr(options, option)
        if given is not None and given != kept:
            raise faults.other_option(store.root, option, kept, given)
    return stored, options


def restore(state: StoredState, epochs: Epochs, backend: KernelBackend) -> None:
    """Puts a stored state in the place of a bootstrap. The dictionary must hold what was stored."""
    if state.manifest.layout != layout_of(backend.program):
        raise faults.other_layout(state.root)
    for name, facts, changes in state.relations():
        backend.restore(name, facts, changes)
    epochs.number = state.epoch
    costs = getattr(epochs.strategy, "costs", None)
    if isinstance(costs, CostModel):
        costs.recall(state.learnt)


def layout_of(program: LogicalProgram) -> dict[str, tuple[str, ...]]:
    """What a store must have been written for, to be put into a backend: the relations and their base types."""
    return {name: tuple(base.value for base in stored.bases) for name, stored in program.relations.items()}


def log_entry(record: EpochRecord, impact: int) -> LogEntry:
    """What the log says of an epoch that is being committed."""
    strata = tuple(
        StratumEntry(s.stratum, s.relations, s.how, s.why, s.derivations, s.seconds) for s in record.work.strata
    )
    return LogEntry(
        record.epoch, time.time(), record.source, record.batch, record.deleted, record.inserted, record.ignored, impact,
        record.seconds, strata,
    )  # fmt: skip


def unmoved(path: Path) -> AbstractContextManager[None]:
    """For readers: while the block lasts, a writer leaves the files of a store where they are."""
    return reading(path / FORMAT_FILE)


def _learnt(strategy: Strategy, strata: list[int] | None) -> dict[str, Any]:
    costs = getattr(strategy, "costs", None)
    return costs.learnt(strata) if isinstance(costs, CostModel) else {}
