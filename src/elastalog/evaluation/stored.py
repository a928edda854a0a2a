"""Epochs in a store: how they get there and come back.

The state is stored as it is, levels and counts of hidden relations included, so that opening evaluates nothing; what
the strategies that maintain sets count for a fact is in the same two numbers. Only where an earlier version made other
hidden relations of the same program, opening evaluates it anew, and the next epoch writes those of now; and under
`dense`, of which the first count of each fact is stored and not the others.

A backend that keeps the facts outside this process writes the first epoch of a store where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.protocol import GONE, Backend, Elsewhere, StateChanges
from elastalog.diagnostics.diagnostic import ElastalogError, finding, warn_of
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.rewriting import Rewriting, evaluate_anew
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.planning.logical import LogicalProgram, is_hidden_name
from elastalog.program import Program, difference
from elastalog.relations.words import Dictionary
from elastalog.storage.entries import JournalRecord, LogEntry, ProgramChange, StratumEntry, impact_of
from elastalog.storage.filesystem import FileEntry, FileSystem
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE, Options
from elastalog.storage.snapshots import pieced_files, write_pieced
from elastalog.storage.state import StoredState
from elastalog.storage.store import Store, WriteElsewhere

log = logging.getLogger("elastalog.storage")


class DurableEpochs:
    """Ties the epochs of a backend to a store: each is in the store before it is in force."""

    in_background: ClassVar[bool] = True
    """Whether snapshots are written in a thread. Tests that count every write have them written by the commit."""

    def __init__(self, epochs: Epochs, dictionary: Dictionary, store: Store, *, is_as_stored: bool = True) -> None:
        """`is_as_stored`: the store has the hidden relations of the program, as `restore` tells."""
        self.store = store
        self._epochs = epochs
        self._backend = backend = epochs.backend
        self._dictionary = dictionary
        hidden = [] if is_as_stored else [name for name, at in backend.program.relations.items() if at.is_hidden]
        self._unwritten = {name: backend.states.of(name).copied() for name in hidden}
        epochs.make_durable = self._store

    def _store(self, record: EpochRecord, rewriting: Rewriting | None) -> None:
        changes = self._backend.states.changed()
        strata: list[int] | None = [stratum.stratum for stratum in record.work.strata]
        program = None
        if rewriting is not None:
            # Strata have other numbers now: what is known of all of them is written again.
            strata, program = None, _program_change(rewriting, self.store.made_for)
            changes = {name: changed for name, changed in changes.items() if name in program.layout}
            relations = rewriting.after.relations
        else:
            relations = self._backend.program.relations
        if self._unwritten:
            strata, program = None, self._relaid(program)
            changes = {**changes, **self._whole(changes, rewriting)}
        # Of an equivalence that is kept as classes, the changes are those of the pairs that generate it.
        is_other = {name: stored.is_hidden or stored.classes is not None for name, stored in relations.items()}
        by_classes = [record.changes[name] for name in record.changes if relations[name].classes is not None]
        impact = impact_of(changes, is_other) + sum(len(came) + len(went) for came, went in by_classes)
        entry = log_entry(record, impact)
        learnt = self._epochs.strategy.costs.learnt(strata)
        news = self.store.news_of(self._dictionary)
        self.store.append(JournalRecord(entry, changes, learnt=learnt, program=program, **news))
        if program is not None:
            self.store.made_for = program.made_for
        self._unwritten = {}

    def _relaid(self, program: ProgramChange | None) -> ProgramChange:
        """A change of the program, if there is one, that has all hidden relations for fresh ones."""
        if program is None:
            text, layout = self._backend.program.checked.source.text, layout_of(self._backend.program)
            program = ProgramChange(text, layout, {}, frozenset(), self.store.made_for)
        hidden = {name for name in program.layout if is_hidden_name(name)}
        return replace(program, renamed={}, fresh=program.fresh | hidden)

    def _whole(self, changes: Mapping[str, StateChanges], rewriting: Rewriting | None) -> dict[str, StateChanges]:
        """All facts of the hidden relations that the store does not know, the changes of this update behind them."""
        renamed = {} if rewriting is None else rewriting.meanwhile.renamed
        kept = self._backend.program.relations if rewriting is None else rewriting.after.relations
        found = {}
        for old, facts in self._unwritten.items():
            name = renamed.get(old, old)
            if name in kept:
                assert facts.level is not None
                assert facts.count is not None
                first = StateChanges(facts.words, np.full(len(facts.words), GONE, np.int32), facts.level, facts.count)
                width = facts.words.shape[1]
                found[name] = StateChanges.joined([first, changes[name]], width) if name in changes else first
        return found

    def after_commit(self) -> None:
        """Puts a snapshot in force that was written meanwhile, and begins one when it is due. The epoch is safe
        already: if a snapshot cannot be written, the journal goes on."""
        try:
            self.store.finish_snapshot()
            coming = self.store.begin_snapshot(self._dictionary) if self.store.is_snapshot_due else None
            if coming is not None and self.in_background:
                coming.start()
            elif coming is not None:
                coming.run()
                self.store.finish_snapshot()
        except (ElastalogError, MemoryError) as error:
            log.warning("no snapshot could be written by epoch %d: %s", self.store.epoch, error)


def create_store(
    path: Path,
    program: Program,
    epochs: Epochs,
    dictionary: Dictionary,
    options: Options,
    record: EpochRecord,
    files: FileSystem | None = None,
) -> Store:
    """Makes a store of the first epoch."""
    backend = epochs.backend
    return Store.create(
        path, program.tree.source.text, options, layout_of(backend.program), dictionary, backend.states.of,
        log_entry(record, record.impact), epochs.strategy.costs.learnt(), files,
        written_elsewhere(backend, is_here=files is not None),
    )  # fmt: skip


def stored_program(
    store: Store, state: StoredState, program: Program | None, strategy: str | None, levels: str | None
) -> tuple[Program, Options]:
    """The program of a state and the options of its store, which must be those given, if any are. A program that the
    store was made for stands for it with the rules that were changed since, of which a warning tells."""
    text, store.made_for = state.program_text(), state.made_for
    if program is not None and program.tree.source.text == text:
        stored = program  # proofs name the file that the user knows, not the store's copy of it
    else:
        stored = Program.reopen(text, state.program_name)
        if program is not None and _differ(stored, program):
            if not is_made_for(state.made_for, program):
                since = state.changed_in if state.made_for is None else None
                raise ElastalogError.of("E0810", location=state.root, path=state.root, since=since)
            found = difference(program, stored)
            warning = finding(
                "E0810.changed", severity="warning", location=store.root, path=store.root, when=state.changed_in,
                added=len(found.rules), removed=len(found.removed),
            )  # fmt: skip
            warn_of(warning)
    if program is not None:
        store.made_for = program.tree.source.text
    options = store.manifest.options
    for option, given in (("strategy", strategy), ("levels", levels)):
        kept = getattr(options, option)
        if given is not None and given != kept:
            raise ElastalogError.of("E0811.other_option", location=store.root, option=option, stored=kept, given=given)
    return stored, options


def is_made_for(known: str | None, program: Program) -> bool:
    """Whether the text that a store was made for, or last upgraded to, means the program."""
    return known is not None and (
        known == program.tree.source.text or not _differ(Program.reopen(known, "<made for>"), program)
    )


def _differ(stored: Program, given: Program) -> bool:
    """Whether programs mean different things, whatever they read and write. Rules that were changed since the store was
    made stand elsewhere in its text than in one that was edited."""
    try:
        found = difference(stored, given)
    except ElastalogError:
        return True
    return bool(found.declarations or found.rules or found.facts or found.removed)


def restore(state: StoredState, epochs: Epochs, dictionary: Dictionary | None = None) -> bool:
    """Puts a stored state in the place of a bootstrap. The dictionary must hold what was stored, or be given empty.
    Returns whether all of it was stored: there may have been other hidden relations when it was written."""
    backend = epochs.backend
    layout = layout_of(backend.program)
    is_as_stored = state.layout == layout
    if not is_as_stored and _declared(state.layout) != _declared(layout):
        raise ElastalogError.of("E0812", location=state.root)
    with state.filling(dictionary):
        for name, facts, changes in state.relations():
            if is_as_stored or layout.get(name) == state.layout[name]:  # hidden ones have numbers of `autoinc`
                backend.states.restore(name, facts, changes)
    epochs.number = state.epoch
    if not is_as_stored:
        log.info("%s: the hidden relations are others than those stored, so the program is evaluated anew", state.root)
        derived = (s.relations for s in backend.program.strata if s.clauses or s.aggregate is not None)
        evaluate_anew(backend, epochs.strategy, frozenset(name for relations in derived for name in relations))
    elif not keeps_all(epochs.strategy):
        evaluate_anew(backend, epochs.strategy, frozenset(backend.program.relations))
    else:
        epochs.strategy.costs.recall(state.learnt)
    return is_as_stored


def keeps_all(strategy: Strategy) -> bool:
    """Whether level and count of every fact are all of a strategy's state."""
    return strategy.annotation.support is not Support.VECTORS


def _declared(layout: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: bases for name, bases in layout.items() if not is_hidden_name(name)}


def layout_of(program: LogicalProgram) -> dict[str, tuple[str, ...]]:
    """What a store must have been written for, to be put into a backend: the relations and their base types."""
    return {name: tuple(base.value for base in stored.bases) for name, stored in program.relations.items()}


def log_entry(record: EpochRecord, impact: int) -> LogEntry:
    """What the log says of an epoch."""
    strata = tuple(
        StratumEntry(s.stratum, s.relations, s.how, s.why, s.derivations, s.seconds, s.cost, s.other)
        for s in record.work.strata
    )
    return LogEntry(
        record.epoch, record.time, record.source, record.batch, record.deleted, record.inserted, record.ignored, impact,
        record.seconds, strata, record.rules.removed, record.rules.added,
        None if record.update is None else record.update.digest,
    )  # fmt: skip


def _program_change(rewriting: Rewriting, made_for: str | None) -> ProgramChange:
    """What a store has to know of a change of rules."""
    change = rewriting.change
    layout = layout_of(rewriting.after)
    renamed = {old: new for old, new in rewriting.meanwhile.renamed.items() if new in layout}
    known = {rewriting.meanwhile.renamed.get(name, name) for name in rewriting.before.relations}
    text, fresh = change.after.tree.source.text, frozenset(layout) - known
    return ProgramChange(text, layout, renamed, fresh, change.made_for or made_for)


def unmoved(path: Path) -> AbstractContextManager[None]:
    """For readers: while the block lasts, a writer leaves the files of a store where they are."""
    return reading(path / FORMAT_FILE)


def written_elsewhere(backend: Backend, *, is_here: bool) -> WriteElsewhere | None:
    """Writes the relations of a store from the files that a backend has them in, so that this process never holds the
    facts; None for other backends. `is_here`: other processes do not see the folder of the store."""
    elsewhere = backend.capabilities.elsewhere
    if elsewhere is None:
        return None

    def write(root: Path, layout: Mapping[str, tuple[str, ...]], epoch: int) -> Mapping[str, FileEntry]:
        files = pieced_files(root, layout, epoch, _pieces(backend.program, elsewhere))
        # Each by itself: a store has one file for each relation.
        given = files.values()
        made = map(write_pieced, given) if is_here or not files else elsewhere.each(write_pieced, given)
        return dict(zip(files, made, strict=True))

    return write


def _pieces(program: LogicalProgram, elsewhere: Elsewhere) -> dict[str, tuple[str, ...]]:
    """The files of relations that are in files only."""
    found = {name: elsewhere.files(name) for name in program.relations}
    return {
        name: tuple(file.path for file in files.base if file.rows)
        for name, files in found.items()
        if files is not None and not files.changes
    }
