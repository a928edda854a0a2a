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
from elastalog.web.calls import asks

SEARCHED = 0.8
"""The part of its time that a search may take: the rest is for the proofs of what it found."""


class Debugging:
    """`undo` applies a suggestion. `epoch`: as if that were the last one."""

    def __init__(self, access: Access, undo: Callable[[Suggestion], Changes]) -> None:
        self._access = access
        self._undo = undo

    @asks
    def uses(
        self,
        fact: Written,
        all: bool = False,  # noqa: A002  # its public name
        seconds: float | None = None,
        epoch: Moment = None,
    ) -> tuple[Fact, ...]:
        """The facts that follow directly from a fact; with `all`, those that would go with it."""
        return self._access.ask(lambda session: tuple(session.uses(fact, all=all)), epoch, seconds, changes=all)

    @asks
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
        return self._access.ask(
            lambda session: session.localise(unwanted, missing, epochs=epochs, time_limit=self._time_to_search()),
            epoch,
            seconds,
            changes=True,
        )

    @asks
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
        found = self._access.ask(
            lambda session: session.suggest(
                unwanted, missing, rejected, weights, self._time_to_search(), epochs=epochs, over=over
            ),
            epoch,
            seconds,
            changes=True,
        )
        return replace(found, undo=self._undo)

    @asks
    def blame(self, fact: Written, seconds: float | None = None, epoch: Moment = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        return self._access.ask(lambda session: session.blame(fact), epoch, seconds, changes=True)

    def _time_to_search(self) -> float:
        return SEARCHED * self._access.time()
