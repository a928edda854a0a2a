"""Running variants in several threads."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.bootstrap.workers import Workers
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.relations.words import Dictionary


def make_workers(relations: Mapping[str, KernelRelation], watch: Watch, jobs: int, dictionary: Dictionary) -> Workers:
    """Workers for a number of threads."""
    if jobs <= 1:
        return Workers(relations, watch)
    # Only now, since its operators would have to be compiled or read from the cache for nothing.
    from elastalog.backends.kernel.threads.workers import ParallelWorkers

    return ParallelWorkers(relations, watch, jobs, dictionary)
