"""Going back behind an update that was committed, by its inverse: what is kept for a state does not depend on the way
there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elastalog.backends.protocol import Backend, Matrix
from elastalog.diagnostics import quota
from elastalog.storage.interrupts import uninterrupted


def go_back(
    backend: Backend, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], bring: Callable[[], object]
) -> None:
    """Takes an update that deleted and inserted explicit facts back, whatever limits there are; `bring` brings strata
    to their fixpoints."""
    watch = backend.watch
    limits = watch.quota, watch.memory
    watch.quota = watch.memory = None
    try:
        with quota.lifted():
            backend.begin(inserted, deleted)
            bring()
            backend.commit()
    except BaseException:
        with uninterrupted():
            backend.rollback()
        raise
    finally:
        watch.quota, watch.memory = limits
