"""How a session evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elastalog.backends.watch import Watch, most_of_memory
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import MOST_EXPANSION, Allowance

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from elastalog.backends.engines import BackendMaker
    from elastalog.backends.watch import Progress
    from elastalog.evaluation.costs import Budget
    from elastalog.relations.functions import Functions


@dataclass(frozen=True, slots=True)
class Settings:
    """How a session evaluates: the options of `elastalog.open` by the same names, once they are checked."""

    strategy: str
    levels: str
    metric: str
    jobs: int
    memory: int | None
    timeout: float | None
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    max_expansion: int = MOST_EXPANSION
    make_backend: BackendMaker | None = None
    functors: Functions | None = None
    libraries: tuple[str | os.PathLike[str], ...] = ()
    may_lack_functors: bool = False
    """Whoever only reads facts needs no functions."""
    on_cluster: bool = False
    spark: Any = None
    """The Spark session that sources of facts are read by, the one that is running unless given."""
    equivalences: frozenset[str] | None = None
    """Those that are kept as classes, all that can be unless given."""

    def watch(self) -> Watch:
        """Limits of what is evaluated."""
        memory = most_of_memory() if self.memory is None else self.memory
        return Watch(memory=memory, on_progress=self.on_progress)

    def reading(self, watch: Watch) -> Allowance:
        """Limits of what is read, those of a watch among them."""
        return Allowance(watch, self.max_expansion, self.jobs)
