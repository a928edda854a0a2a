"""What the benchmarks ask of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from benchmarks.workloads import Facts, Workload

# One evaluation, facts in memory to all derived facts: the number of facts of each relation asked for.
Evaluate: TypeAlias = Callable[[], Mapping[str, int]]


class NotExpressibleError(Exception):
    """The engine can not express the workload's program."""


@dataclass(frozen=True, slots=True)
class Options:
    """`jobs`: threads. `prototype`: the folder of the kernel's prototype."""

    jobs: int = 1
    prototype: str | None = None


class Engine(Protocol):
    def prepare(self, workload: Workload, facts: Facts, relations: Sequence[str], options: Options) -> Evaluate:
        """Everything that should not be timed: converting the facts into the engine's own arrays, compiling. Raises
        NotExpressibleError."""
