"""For programs that live on a session: who wants to know of epochs, and what they hear."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from elastalog.diagnostics.arguments import wrong_kind
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord

log = logging.getLogger("elastalog.session")

Listener = TypeVar("Listener", bound=Callable[[Changes], object])


class Listeners:
    """Functions that are called with what an epoch changed, once it is durable, in the order in which they came."""

    def __init__(self) -> None:
        self._functions: list[Callable[[Changes], object]] = []

    def add(self, function: Listener) -> Listener:
        """Calls a function from now on. Returns it, so that this can be a decorator."""
        if not callable(function):
            raise wrong_kind("what is called is a function", function, "give a function of one argument, `Changes`")
        self._functions.append(function)
        return function

    def tell(self, record: EpochRecord, changes: Callable[[EpochRecord], Changes]) -> None:
        """Tells of an epoch. What goes wrong in a function is logged: the epoch is there in any case."""
        if log.isEnabledFor(logging.INFO):
            origin = "".join(f" {word}" for word in (record.source, record.batch) if word is not None)
            log.info(
                "epoch %d: %d explicit facts inserted, %d deleted, %d changes, %.3f s%s",
                record.epoch, record.inserted, record.deleted, record.impact, record.seconds,
                f" (from{origin})" if origin else "",
            )  # fmt: skip
        for function in tuple(self._functions):
            try:
                function(changes(record))
            except Exception:
                log.exception("%r failed when it was told of epoch %d", function, record.epoch)
