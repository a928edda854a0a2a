"""What makes epochs, in one thread, in the order in which they are asked for; and what says beforehand what an epoch
would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from elastalog.debugging.answers import Suggestion
from elastalog.diagnostics.diagnostic import error
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.epochs import EpochRecord
from elastalog.pipeline.files.policy import Mode
from elastalog.session import Session
from elastalog.session.materialisation import Rows
from elastalog.session.pending import PendingUpdate
from elastalog.web import rules
from elastalog.web.calls import asks, commits
from elastalog.web.reading import Committed, Moment, Reading

SOURCE = "http"
"""Where updates with a key come from, unless they say."""


class Writing:
    """`committed` is called with every epoch that is made, when readers see it."""

    def __init__(self, reading: Reading, committed: Callable[[EpochRecord], None]) -> None:
        self._reading = reading
        self._replicas = reading.replicas
        self._committed = committed

    # --- what if ---------------------------------------------------------------------------------------------------

    @asks
    def preview(
        self,
        inserted: Mapping[str, Rows] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        seconds: float | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
        epoch: Moment = None,
    ) -> Changes:
        """What an update would change, or would have changed at an earlier epoch; also with rules that come and go."""
        texts, gone = _refused_or(added), list(removed)
        return self._reading.ask(
            lambda session: session.preview(inserted, deleted, added=texts, removed=gone), epoch, seconds, changes=True
        )

    @asks
    def forecast(
        self,
        inserted: Mapping[str, Rows] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches first."""
        texts, gone = _refused_or(added), list(removed)
        return self._reading.ask(
            lambda session: session.forecast(inserted, deleted, added=texts, removed=gone), changes=True
        )

    @asks
    def preview_program(self, program: str) -> Changes:
        """What another program in the place of this one would change."""

        def preview(session: Session) -> Changes:
            return session.upgrade(rules.read_text(program, session.program), preview=True)

        return self._reading.ask(preview, changes=True)

    @asks
    def preview_undoing(self, epoch: int | None = None) -> Changes:
        """What taking back an epoch, by default the last, would change."""

        def preview(session: Session) -> Changes:
            return session.preview(session.engine.undoing(session.epoch if epoch is None else epoch))

        return self._reading.ask(preview, changes=True)

    # --- epochs ----------------------------------------------------------------------------------------------------

    @commits
    def apply(
        self,
        inserted: Mapping[str, Rows] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        key: str | None = None,
        source: str | None = None,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
        after: int | None = None,
        bad_rows: Mode | None = None,
    ) -> Committed:
        """Makes the next epoch, of facts and of rules `added` and `removed`. An update with a `key` is done once,
        however often it comes, also after a crash if there is a store; `source` says from where, and has keys of its
        own. Another update with such a key is refused. `after`: only if this is still the last epoch. `bad_rows`: how
        to handle invalid rows, as the session says unless given."""
        texts, gone = _refused_or(added), list(removed)

        def fill(update: PendingUpdate) -> None:
            if after is not None and after != self._replicas.epoch:
                raise error("E0938", wanted=after, now=self._replicas.epoch)
            if gone:
                update.remove_rules(gone)
            if texts:
                update.add_rules(texts)
            for rows_of, take in ((deleted, update.delete), (inserted, update.insert)):
                for name, rows in (rows_of or {}).items():
                    take(name, rows)

        return self._commit(fill, key, source, bad_rows)

    @commits
    def become(self, program: str, *, key: str | None = None, source: str | None = None) -> Committed:
        """Puts another program in the place of this one."""

        def fill(update: PendingUpdate) -> None:
            update.become(rules.read_text(program, update.program))

        return self._commit(fill, key, source)

    @commits
    def take_back(self, epoch: int | None = None, *, key: str | None = None, source: str | None = None) -> Committed:
        """Takes back what an epoch, by default the last, did to explicit facts and rules."""

        def fill(update: PendingUpdate) -> None:
            update.stands_for = "undo", epoch
            self._replicas.take_back(update, epoch)

        return self._commit(fill, key, source)

    @commits
    def undo(self, suggestion: Suggestion) -> Committed:
        """Undoes what a suggestion names. Raises ElastalogError if there have been other epochs since."""
        from elastalog.session.repair import fill_undoing

        def fill(update: PendingUpdate) -> None:
            fill_undoing(
                update, suggestion, self._replicas.epoch, lambda: self._reading.look(lambda session: session.log())
            )

        return self._commit(fill, None, "repair")

    def _commit(
        self,
        fill: Callable[[PendingUpdate], None],
        key: str | None,
        source: str | None,
        bad_rows: Mode | None = None,
    ) -> Committed:
        origin = source if source is not None or key is None else SOURCE

        def commit() -> Committed:
            update = self._replicas.update(origin, key, bad_rows)
            fill(update)
            self._replicas.commit(update, self._committed)
            return Committed(update.stats, update.changes)

        with self._replicas.wanting():
            done = self._reading.worker.do(commit)
        self._reading.worker.afterwards(self._replicas.follow)
        return done


def _refused_or(added: str | Iterable[str]) -> list[str]:
    """The texts of rules, if there is nothing in them that must not come over the network."""
    texts = [added] if isinstance(added, str) else list(added)
    rules.refuse_in_rules(texts)
    return [text for text in texts if text.strip()]
