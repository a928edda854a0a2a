"""How a session goes from epoch to epoch."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import methodcaller
from typing import TypeVar

from elastalog.analysis.functor_values import INVALID_TEXTS
from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import Within
from elastalog.diagnostics.arguments import require_mapping, require_one_of, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError, finding, warn_of
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.diagnostics.quota import CURRENT, most_of_memory
from elastalog.evaluation.changes import Changes, RelationChanges, Update
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.epochs import EpochRecord
from elastalog.evaluation.pending import fill
from elastalog.evaluation.strategies.look_ahead import Marks
from elastalog.evaluation.strategies.protocol import Work
from elastalog.pipeline.files.policy import FAIL, BadRows, Mode
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.provenance.fact import Fact
from elastalog.relations.facts import Decodings, Relation
from elastalog.relations.schema import Schema
from elastalog.session.history import History
from elastalog.session.materialisation import Materialisation, Rows
from elastalog.session.pending import PendingUpdate, batch_id
from elastalog.storage import errors

log = logging.getLogger("elastalog.session")

Listener = TypeVar("Listener", bound=Callable[[Changes], object])


class Updates:
    """Takes a materialisation from epoch to epoch, and tells its history. It is what a pending update is for."""

    def __init__(
        self,
        materialisation: Materialisation,
        history: History,
        heartbeats: bool = False,
        policy: BadRows = FAIL,
    ) -> None:
        self._heartbeats = heartbeats
        self.policy = policy
        self.now = now = materialisation
        self._is_limited = now.timeout is not None or now.watch.memory != most_of_memory()
        """Whether there are limits but those that each process has."""
        self._on_long = now.tell_of_growth
        self.history = history
        self._is_closed = False
        self._inserted_into: set[str] = set()
        """Relations of which it is known, or was told, that rules derive their facts beside those inserted."""
        self.listeners = Listeners()
        self._decodings = Decodings({}, now.dictionary, make_frame)

    def close(self) -> None:
        """There will be no further epoch."""
        self._is_closed = True

    # --- making updates --------------------------------------------------------------------------------------------

    def apply(
        self,
        inserted: Mapping[str, Rows] | Sequence[Fact] | str | os.PathLike[str] | None,
        deleted: Mapping[str, Rows] | Sequence[Fact] | None,
        source: str | None,
        batch: str | int | None,
        bad_rows: Mode | None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file."""
        update = PendingUpdate(self, source, batch, bad_rows)
        if inserted is not None and type(inserted) is not dict and isinstance(inserted, _PATHS):
            require_mapping(
                "deleted facts are a mapping from relations to rows", deleted, 'write `db.apply({"edge": [(1, 2)]})`'
            )
            update.read(inserted)
            inserted = None
        fill(update, inserted, deleted)
        return update.commit()

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Says which update will follow the next one, so that the next one can prepare for it."""
        strategy = self.now.epochs.strategy
        require_one_of("value of `marks`", marks, _KINDS_OF_MARKS)
        if not isinstance(upcoming, PendingUpdate):
            raise wrong_kind("what is announced is an update", upcoming, "make one with `db.update()`, and fill it")
        upcoming.require_open()
        if marks != Marks.AUTO.value and Marks(marks) not in strategy.marks:
            advice = "`eager` and `linked` marks are for dred, bf and bfc"
            raise ElastalogError([Diagnostic("E0903", f"strategy `{strategy.name}` has no {marks} marks", help=advice)])
        strategy.announce(upcoming.as_update, Marks(marks))

    def pending(
        self,
        inserted: Mapping[str, Rows] | Sequence[Fact] | str | os.PathLike[str] | PendingUpdate | None,
        deleted: Mapping[str, Rows] | Sequence[Fact] | None,
        added: str | Iterable[str],
        removed: int | str | Iterable[int | str],
    ) -> PendingUpdate:
        """An update that is not to be committed, unless it is given as one."""
        if isinstance(inserted, PendingUpdate):
            inserted.require_open()
            return inserted
        update = PendingUpdate(self)
        if isinstance(inserted, _PATHS):
            update.read(inserted)
            inserted = None
        if removed not in ((), []):
            update.remove_rules(removed)
        if added not in ("", (), []):
            update.add_rules(added)
        fill(update, inserted, deleted)
        return update

    def forecast(self, update: PendingUpdate) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update, by the strata that would be affected first."""
        with self.now.lock:
            return self.now.epochs.forecast(update.as_update())

    def preview(self, update: PendingUpdate) -> Changes:
        """What an update would change."""
        now = self.now
        with now.asking(update.added_rules):
            wanted = update.as_update()
            self.history.batches.refuse_other(wanted.source, wanted.batch, update.digest)
            now.watch.check()
            with Within(now.watch, None, on_long=now.tell_of_growth):
                found, ignored = now.epochs.preview(wanted)
            changes = self._changes(found, update.schemas)
            changes.ignored = ignored
            self._tell_of_derived(wanted, changes)
            self._tell_of_conclusions(wanted)
            return changes

    # --- committing ------------------------------------------------------------------------------------------------

    def commit(self, update: Update, committed: Callable[[EpochRecord], None] | None = None) -> EpochRecord:
        """Applies an update made of words: the next epoch. `committed` is called with what is returned, also when
        Ctrl-C was held back until the commit was done and ends this call."""
        now, history, epochs = self.now, self.history, self.now.epochs
        with now.lock:
            if self._is_closed:
                raise ElastalogError.of("E0814.closed")
            if (durable := history.durable) is not None:
                durable.store.refuse_elsewhere()  # first: a forked child may not write either
            elif history.store is not None:
                raise errors.read_only("it cannot be updated")
            if update.batch is not None and (update.source, update.batch) in history.batches:
                history.batches.refuse_other(update.source, update.batch, update.digest)
                record = EpochRecord(
                    epochs.number, 0, 0, update.size, {}, Work(), 0.0, update.source, update.batch, is_repeated=True
                )
                if committed is not None:
                    committed(record)
                return record
            if update.rules is not None and update.rules.before is not now.program:
                raise InternalError("commit", "the rules of an update were changed from a program that is gone")
            before = epochs.last
            if INVALID_TEXTS:
                INVALID_TEXTS.clear()  # those that questions have met
            try:
                now.watch.on_long = self._on_long
                if self._is_limited or CURRENT.get() is not None:
                    with now.watch.within(now.timeout):
                        record = epochs.apply(update, self._heartbeats)
                else:
                    record = epochs.apply(update, self._heartbeats)
                if record.is_unchanged:
                    history.note_batch(update)
                    if committed is not None:
                        committed(record)
                    self._tell_of_derived(update, {})
                    return record
            finally:
                now.watch.on_long = None
                last = epochs.last
                if last is not None and last is not before:
                    try:
                        history.add(last, update)
                    except BaseException:  # Ctrl-C may come here, too
                        with uninterrupted():
                            history.add(last, update)
                        raise
                    finally:
                        if committed is not None:
                            committed(last)
            if durable is not None:
                durable.after_commit()
            if self.listeners.functions or log.isEnabledFor(_INFO):
                self.listeners.tell(record, self.changes_of)
            if now.observers:
                now.tell(methodcaller("committed", record, time.time_ns()))
            if INVALID_TEXTS:
                now.tell_invalid_texts()
            if record.ignored and update.deleted:
                self._tell_of_derived(update, {})
            if not self._inserted_into.issuperset(update.inserted):
                self._tell_of_conclusions(update)
            return record

    def _tell_of_derived(self, update: Update, changes: Mapping[str, RelationChanges]) -> None:
        """Warns of facts that an update was to delete and that still hold, since rules derive them. No facts are
        fetched for that from where this process does not have them."""
        now, backend, found = self.now, self.now.backend, list[Fact]()
        elsewhere = backend.capabilities.elsewhere
        for name, words in update.deleted.items():
            if name in now.schemas and (elsewhere is None or elsewhere.files(name) is None):
                stay = words[backend.contains(name, words) & ~backend.is_explicit(name, words)]
                gone = changes[name].deleted if name in changes else ()
                rows = Relation.of(now.schemas[name], now.dictionary, stay[:_LOOKED])
                found += [Fact(name, values) for values in rows if values not in gone]
        if found:
            facts = ", ".join(map(str, found[:_FEW])) + ", …" * (len(found) > _FEW)
            warn_of(finding("E0625", severity="warning", facts=facts, it="it" if len(found) == 1 else "them"))

    def _tell_of_conclusions(self, update: Update) -> None:
        """Warns, once for a relation, of facts that an update inserts where the program lets only rules derive them."""
        now, checked = self.now, self.now.program.checked
        for name, words in update.inserted.items():
            if name in self._inserted_into or name not in checked.relations:
                continue
            self._inserted_into.add(name)
            if len(words) and not checked.is_given(name) and not checked.has_facts(name):
                first = Fact(name, next(iter(Relation.of(now.schemas[name], now.dictionary, words[:1]))))
                facts = f"{first}" + ", …" * (len(words) > 1)
                warn_of(finding("E0625.explicit", severity="warning", facts=facts, relation=name))

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""
        return (source, batch_id(source, batch)) in self.history.batches

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed, as relations."""
        changes = self._changes(record.changes, self.now.schemas)  # whatever becomes of the rules
        if record.is_repeated:
            changes.is_repeated = True
        if record.ignored:
            changes.ignored = record.ignored
        return changes

    def _changes(self, words: ChangedWords, schemas: Mapping[str, Schema]) -> Changes:
        if self._decodings.schemas is not schemas:
            self._decodings = Decodings(schemas, self.now.dictionary, make_frame)
        return Changes(words, self._decodings)

    def changes_since(self, epoch: int) -> Changes:
        """What the epochs after one have changed together."""
        with self.now.lock:
            return self._changes(self.history.net_changes(epoch), self.now.schemas)


class Listeners:
    """Functions that are called with what an epoch changed, once it is durable, in the order in which they came."""

    def __init__(self) -> None:
        self.functions: list[Callable[[Changes], object]] = []

    def add(self, function: Listener) -> Listener:
        """Calls a function from now on. Returns it, so that this can be a decorator."""
        if not callable(function):
            raise wrong_kind("what is called is a function", function, "give a function of one argument, `Changes`")
        self.functions.append(function)
        return function

    def tell(self, record: EpochRecord, changes: Callable[[EpochRecord], Changes]) -> None:
        """Tells of an epoch. What goes wrong in a function is logged: the epoch is there in any case."""
        if log.isEnabledFor(_INFO):
            origin = "".join(f" {word}" for word in (record.source, record.batch) if word is not None)
            log.info(
                "epoch %d: %d explicit facts inserted, %d deleted, %d changes, %.3f s%s",
                record.epoch, record.inserted, record.deleted, record.impact, record.seconds,
                f" (from{origin})" if origin else "",
            )  # fmt: skip
            for stratum in record.work.strata:
                told = record.epoch, ", ".join(stratum.relations), stratum.how, stratum.why
                log.info("epoch %d: %s: %s (%s)", *told)
        for function in tuple(self.functions):
            try:
                function(changes(record))
            except Exception:
                log.exception("%r failed when it was told of epoch %d", function, record.epoch)


_LOOKED, _FEW = 100, 3
"""Facts of a relation that are looked at to be named, and that are."""
_INFO = logging.INFO
_PATHS = (str, os.PathLike)
_KINDS_OF_MARKS = tuple(kind.value for kind in Marks)
