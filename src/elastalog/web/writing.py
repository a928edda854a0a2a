"""Commits and previews of edits. One thread commits, in the order of the requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from elastalog.client.encoding import rows_from_json
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
"""The source of updates with a key that name none."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Changes to facts and rules: `fill` stages them in an update of a session. `bad_rows`: how to handle invalid rows;
    by default as the session does."""

    fill: Callable[[Session, PendingUpdate], object]
    bad_rows: Mode | None = None

    def of(self, session: Session, source: str | None = None, key: str | None = None) -> PendingUpdate:
        """An update of a session with these changes staged."""
        update = session.update(source, key, bad_rows=self.bad_rows)
        update.is_unused = False  # a refused one is told to who asked
        self.fill(session, update)
        return update


def edits(
    inserted: Mapping[str, Rows] | None = None,
    deleted: Mapping[str, Rows] | None = None,
    *,
    added: str | Iterable[str] = "",
    removed: Iterable[int | str] = (),
    after: int | None = None,
    bad_rows: Mode | None = None,
    is_json: bool = False,
) -> Edit:
    """An edit that inserts and deletes facts, adds and removes rules. `after`: fail unless this is still the last
    epoch. `is_json`: rows are values of JSON."""
    texts, gone = [added] if isinstance(added, str) else list(added), list(removed)
    rules.refuse_in_rules(texts)
    texts = [text for text in texts if text.strip()]

    def fill(session: Session, update: PendingUpdate) -> None:
        if after is not None and after != session.epoch:
            raise error("E0938", wanted=after, now=session.epoch)
        if gone:
            update.remove_rules(gone)
        if texts:
            update.add_rules(texts)
        for rows_of, take in ((deleted, update.delete), (inserted, update.insert)):
            for name, rows in (rows_of or {}).items():
                take(name, rows_from_json(update.schemas.get(name), rows) if is_json else rows)

    return Edit(fill, bad_rows)


def becoming(program: str) -> Edit:
    """An edit that replaces the program."""
    return Edit(lambda _, update: update.become(rules.read_text(program, update.program)))


def undoing(epoch: int | None = None) -> Edit:
    """An edit that undoes an epoch, by default the last."""

    def fill(session: Session, update: PendingUpdate) -> None:
        update.stands_for = "undo", epoch
        session.engine.undoing(session.epoch if epoch is None else epoch, update)

    return Edit(fill)


def repairing(suggestion: Suggestion) -> Edit:
    """An edit that applies a suggested repair. Fails if there have been other epochs since."""
    from elastalog.session.repair import fill_undoing

    return Edit(lambda session, update: fill_undoing(update, suggestion, session.epoch, session.log))


class Writing:
    """`committed` is called with the record of every new epoch, once readers see it."""

    def __init__(self, reading: Reading, committed: Callable[[EpochRecord], None]) -> None:
        self._reading = reading
        self._replicas = reading.replicas
        self._committed = committed

    @asks
    def preview(self, edit: Edit, epoch: Moment = None, seconds: float | None = None) -> Changes:
        """What an edit would change, now or at an earlier epoch."""
        return self._reading.ask(lambda session: session.preview(edit.of(session)), epoch, seconds, changes=True)

    @asks
    def forecast(self, edit: Edit) -> tuple[Forecast, ...]:
        """Whether the first strata that an edit reaches would be updated or recomputed."""
        return self._reading.ask(lambda session: session.forecast(edit.of(session)), changes=True)

    @commits
    def commit(self, edit: Edit, key: str | None = None, source: str | None = None) -> Committed:
        """Commits an edit as the next epoch. An edit with a `key` is committed once, however often it is sent, with a
        store also after a crash; each `source` has keys of its own. A different edit with a known key is refused."""
        origin = source if source is not None or key is None else SOURCE

        def made() -> Committed:
            update = edit.of(self._replicas.first, origin, key)
            self._replicas.commit(update, self._committed)
            return Committed(update.stats, update.changes)

        with self._replicas.wanting():
            done = self._reading.worker.do(made)
        self._reading.worker.afterwards(self._replicas.follow)
        return done
