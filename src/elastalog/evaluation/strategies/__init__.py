"""The strategies by name: ways to maintain a materialisation through updates. All come to the same facts.

- `elastic` is what sessions use: levels and counts, stratum by stratum an update or a recompute, whichever should cost
  less.
- `recompute` evaluates every affected stratum anew: the baseline.
- `dred`, `dredc`, `bf`, `bfc` and `counting` are those of the papers, as they have them: for small memory, and to
  compare with.
- `dense` and the marks of `look_ahead` are for study: what it takes to keep the number of derivations at every level,
  and what it saves to know the next update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elastalog import late
from elastalog.backends.watch import Watch
from elastalog.evaluation.costs import Budget
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.elastic import Elastic

STRATEGIES: Mapping[str, Callable[[Watch, Budget], Strategy]] = {
    "elastic": Elastic,
    "recompute": late.function(f"{__name__}.recompute:Recompute"),
    "dense": late.function(f"{__name__}.elastic:Dense"),
    "dred": late.function(f"{__name__}.dred:DRed"),
    "dredc": late.function(f"{__name__}.dredc:DRedC"),
    "counting": late.function(f"{__name__}.counting:Counting"),
    "bf": late.function(f"{__name__}.bfc:BF"),
    "bfc": late.function(f"{__name__}.bfc:BFC"),
}


def make_strategy(name: str, watch: Watch, budget: Budget) -> Strategy:
    """A strategy with its budget: what an update may cost."""
    return STRATEGIES[name](watch, budget)
