"""A session: a program, its facts, and everything that follows from them.

This is the front door: how a session goes from epoch to epoch, and how it ends. What it answers on the way is in
`answering`. Each method says what it promises; the parts behind it do the work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from elastalog.diagnostics.arguments import require_number, stays_here
from elastalog.pipeline.files.policy import FAIL, Policy
from elastalog.program import as_program
from elastalog.session.answering import Answering

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    import numpy as np

    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.costs import Forecast
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.evaluation.update import Update
    from elastalog.pipeline.files.policy import Mode, Report
    from elastalog.program import Program
    from elastalog.session.history import History
    from elastalog.session.initial_facts import Rows
    from elastalog.session.materialisation import Materialisation
    from elastalog.session.services import Listener


class Session(Answering):
    """A program, its facts, and everything that follows from them. Made by `elastalog.open`."""

    def __init__(
        self,
        materialisation: Materialisation,
        history: History,
        reports: Sequence[Report] = (),
        *,
        heartbeats: bool = False,
        policy: Policy = FAIL,
    ) -> None:
        super().__init__(materialisation, history, heartbeats, policy)
        self.reports = list(reports)

    # --- life --------------------------------------------------------------------------------------------------------

    __reduce__ = stays_here(
        "a session", "open it in the process that uses it; rows, and tables made by `to_arrow`, can be handed on"
    )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session: it cannot be updated any more. Its store, if it has one, is free for another writer."""
        with self._lock:
            self._updates.close()
            self._history.close()

    def reading(self) -> AbstractContextManager[None]:
        """A block in which reading files obeys the limits of the session, its time beginning now."""
        return self._materialisation.reading()

    def exclusively(self) -> AbstractContextManager[object]:
        """A block in which no other thread updates the session: updates and questions of others wait."""
        return self._lock

    def within(self, seconds: float | None = None, memory: int | None = None) -> AbstractContextManager[None]:
        """A block in which all that is asked and evaluated may take so many seconds, and allocate so many bytes,
        together: beyond that the call that is under way raises LimitReached, and the session is as it was. No other
        thread uses the session meanwhile. What the session was opened with as `timeout` limits every single call."""
        require_number("memory", memory, 0, whole=True)
        return self._materialisation.within(seconds, memory)

    # --- updating ----------------------------------------------------------------------------------------------------

    def update(
        self, source: str | None = None, batch: str | int | None = None, *, bad_rows: Mode | None = None
    ) -> PendingUpdate:
        """An update to fill, as a context manager: it is committed on leaving, or dropped if an exception passes. An
        update that carries a batch that its source has sent before does nothing; one that changes neither explicit
        facts nor rules makes no epoch, unless the session keeps heartbeats. `bad_rows`: what happens to rows that are
        no facts, as the session says unless given; `reports` of the update tell what was let pass."""
        return self._updates.begin(source, batch, bad_rows)

    def apply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file, and returns what it changed.
        `bad_rows` as for `update`; the `reports` of the changes tell what was let pass."""
        return self._updates.apply(inserted, deleted, source, batch, bad_rows)

    async def aapply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """`apply` for programs with an event loop: it is done in another thread, and the loop goes on."""
        import asyncio

        applied = partial(self.apply, inserted, deleted, source=source, batch=batch, bad_rows=bad_rows)
        return await asyncio.to_thread(applied)

    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Adds and removes rules, as an update: the next epoch is that of the new program. `added`: program text (or
        several), with rules, declarations of new relations, and facts. `removed`: rules by number or text. An update
        that changes facts as well is made with `update` and its `add_rules` and `remove_rules`."""
        update = self._updates.begin(source, batch)
        update.remove_rules(removed)
        update.add_rules(added)
        return update.commit()

    def upgrade(
        self,
        program: str | os.PathLike[str] | Program,
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Goes over to another program (a path, a text, or a `Program`): the difference of the two, in rules,
        declarations and facts of the text, is one update. Relations that the other program does not declare stay. With
        `preview`, only what it would change is told."""
        after = as_program(program)
        if preview:
            return self._updates.preview_upgrade(after)
        return self._updates.upgrade(after, source, batch)

    def preview(
        self,
        inserted: Mapping[str, Rows] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> Changes:
        """What an update would change: it is done and taken back, and no epoch is made. Facts are given as to `apply`,
        rules as to `change_rules`; or, instead of all, an update that has not been committed."""
        return self._updates.preview(self._updates.pending(inserted, deleted, added, removed))

    def forecast(
        self,
        inserted: Mapping[str, Rows] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update, by the strata that would be affected first: those whose rules
        change, or that read a changed relation or hold one. Strata further up depend on what these change. Facts are
        given as to `apply`, rules as to `change_rules`; or, instead of all, an update that has not been committed."""
        return self._updates.forecast(self._updates.pending(inserted, deleted, added, removed))

    def on_commit(self, function: Listener) -> Listener:
        """Calls a function with the `Changes` of every epoch from now on, when it is durable, in the thread that made
        it. What goes wrong in it is logged. Returns the function, so that this can be a decorator."""
        return self._updates.listeners.add(function)

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Says which update will follow the next one, so that the next one can prepare for it. `marks`: `eager` or
        `linked`, for dred, bf and bfc, or `auto`: linked ones where they pay, none under other strategies. Results
        never depend on it, nor on whether that update comes."""
        self._updates.announce(upcoming, marks)

    def prepare(self) -> None:
        """Plans updates and makes the indexes that they need now, instead of when the first update needs them."""
        self._updates.prepare()

    def encode(self, name: str, rows: Rows) -> np.ndarray:
        """Facts of a relation as words."""
        return self._materialisation.encode(name, rows)

    def commit(self, update: Update) -> EpochRecord:
        """Applies an update made of words: the next epoch. `update` and `apply` are the ways to make one."""
        return self._updates.commit(update)

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""
        return self._updates.is_applied(source, batch)

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed, as relations."""
        return self._updates.changes_of(record)

    # --- other epochs ------------------------------------------------------------------------------------------------

    def at(self, epoch: int | datetime) -> Session:
        """A read-only session of an earlier epoch, kept by the store back to its retention: by its number, or by a time
        (without a time zone: of this machine) at which it was in force."""
        return Session(*self._history.at(epoch))

    def refresh(self) -> bool:
        """Follows a store that another process writes: a session opened with `read_only=True` goes on to the latest
        epoch. Returns whether there was a later one. Relations and answers taken before stay as they are."""
        with self._lock:
            later = self._history.later()
            if later is None:
                return False
            self._take(*later)
        return True

    def twin(self) -> Session:
        """A second session of this epoch, with facts of its own in memory, to be read while this one is updated. It is
        not updated itself, it follows."""
        from elastalog.session.following import twin_of

        with self._lock:
            return Session(*twin_of(self._materialisation, self._history))

    def follow(self, update: Update, record: EpochRecord) -> bool:
        """For a twin: does what the other session did, an update and what `commit` returned for it. Returns whether it
        came to the same, which only numbers of `autoinc` and choices can prevent."""
        from elastalog.session.following import follow

        with self._lock:
            return follow(self._materialisation, self._history, update, record)
