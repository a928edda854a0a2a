"""Running pipelines in several threads."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.fixpoint import Workers
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.watch import Watch


def make_workers(relations: Mapping[str, KernelRelation], watch: Watch, jobs: int) -> Workers:
    """Workers for a number of threads."""
    return Workers(relations, watch)
