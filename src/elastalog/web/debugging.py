"""What broke it, what to mend, and what rests on a fact: questions that are answered by trying things out. Of any epoch
that is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from elastalog.database import Written
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.evaluation.changes import Changes
from elastalog.provenance.fact import Fact
from elastalog.web.access import Access, Moment
from elastalog.web.calls import works

SEARCHED = 0.8
"""The part of its time that a search may take: the rest is for the proofs of what it found."""


class Debugging:
    """`undo` applies a suggestion. `epoch`: as if that were the last one."""

    def __init__(self, access: Access, undo: Callable[[Suggestion], Changes]) -> None:
        self._access = access
        self._undo = undo

    @works
    def uses(
        self,
        fact: Written,
        all: bool = False,  # noqa: A002  # its public name
        seconds: float | None = None,
        epoch: Moment = None,
    ) -> tuple[Fact, ...]:
        """The facts that follow directly from a fact; with `all`, those that would go with it."""
        if not all:
            with self._access.at(epoch, seconds) as session:
                return tuple(session.uses(fact))
        return self._access.work(lambda session, left: tuple(session.uses(fact, all=True)), seconds, epoch)

    @works
    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        seconds: float | None = None,
        epoch: Moment = None,
    ) -> Localisation:
        """A smallest part of the last update, or of what happened between two epochs, that shows all faults."""
        return self._access.work(
            lambda session, left: session.localise(unwanted, missing, epochs=epochs, time_limit=SEARCHED * left),
            seconds,
            epoch,
        )

    @works
    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        over: str | None = None,
        seconds: float | None = None,
        epoch: Moment = None,
    ) -> Suggestion:
        """A smallest repair; see `Session.suggest`."""
        found = self._access.work(
            lambda session, left: session.suggest(
                unwanted, missing, rejected, weights, SEARCHED * left, epochs=epochs, over=over
            ),
            seconds,
            epoch,
        )
        return replace(found, undo=self._undo)

    @works
    def blame(self, fact: Written, seconds: float | None = None, epoch: Moment = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        return self._access.work(lambda session, left: session.blame(fact), seconds, epoch)
