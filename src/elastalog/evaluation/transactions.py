"""Updates of a backend from beginning to end: whatever happens, its state is the one before or the one after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from elastalog.backends.protocol import Backend, Matrix
from elastalog.diagnostics import quota
from elastalog.diagnostics.interrupts import uninterrupted


@contextmanager
def transaction(
    backend: Backend,
    deleted: Mapping[str, Matrix],
    inserted: Mapping[str, Matrix],
    anew: frozenset[str] = frozenset(),
    commit: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Begins an update, in whose block strata are brought to their fixpoints, and commits it; an error or Ctrl-C takes
    it back. `commit`: commits it together with what depends on it."""
    try:
        backend.begin(deleted, inserted, anew)
        yield
        with uninterrupted():
            (commit or backend.commit)()
    except BaseException:
        with uninterrupted():
            backend.rollback()
        raise


def go_back(
    backend: Backend, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], bring: Callable[[], object]
) -> None:
    """Takes an update that deleted and inserted explicit facts back, whatever limits there are; `bring` brings strata
    to their fixpoints."""
    watch = backend.watch
    limits = watch.quota, watch.memory
    watch.quota = watch.memory = None
    try:
        with quota.lifted(), transaction(backend, inserted, deleted):
            bring()
    finally:
        watch.quota, watch.memory = limits
