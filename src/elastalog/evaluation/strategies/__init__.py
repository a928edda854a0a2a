"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elastalog.backends.watch import Watch
from elastalog.evaluation.costs import Budget
from elastalog.evaluation.strategies.bf import BF
from elastalog.evaluation.strategies.bfc import BFC
from elastalog.evaluation.strategies.by_stratum import MaintainingStrategy
from elastalog.evaluation.strategies.counting import Counting
from elastalog.evaluation.strategies.dense import Dense
from elastalog.evaluation.strategies.dred import DRed
from elastalog.evaluation.strategies.dredc import DRedC
from elastalog.evaluation.strategies.elastic import Elastic
from elastalog.evaluation.strategies.marking import Marks
from elastalog.evaluation.strategies.protocol import Strategy
from elastalog.evaluation.strategies.recompute import Recompute

STRATEGIES: Mapping[str, Callable[[Watch, Budget], Strategy]] = {
    "elastic": Elastic,
    "recompute": lambda watch, budget: Recompute(),
    "dense": Dense,
    "dred": DRed,
    "dredc": DRedC,
    "counting": Counting,
    "bf": BF,
    "bfc": BFC,
}


def marks_of(strategy: Strategy) -> tuple[Marks, ...]:
    """The kinds of look-ahead that a strategy offers."""
    return strategy.marks if isinstance(strategy, MaintainingStrategy) else (Marks.NONE,)


def make_strategy(name: str, watch: Watch, budget: Budget) -> Strategy:
    """A strategy with its budget: what an update may cost."""
    return STRATEGIES[name](watch, budget)
