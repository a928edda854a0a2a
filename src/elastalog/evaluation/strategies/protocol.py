"""A strategy builds a materialisation (bootstrap) and maintains it through updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import ClassVar, Final, Protocol

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend
from elastalog.evaluation.costs import CostModel, Forecast
from elastalog.evaluation.counters import Counters
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum

REBUILT: Final = ("bootstrap", "the rules make another stratum of it")
"""How and why of a stratum that cannot be maintained since its rules are others."""


def rebuilt(stratum: LogicalStratum) -> tuple[str, str]:
    """How and why of a stratum that is not maintained."""
    if not stratum.dominance:
        return REBUILT
    return (
        "bootstrap",
        stratum.why_in_rounds or "ranks are kept by strategy `elastic` alone, and not where rules change",
    )


@dataclass(slots=True)
class StratumWork:
    """What was done to one stratum: how (`bootstrap`, `update`, `refold`, or `switch` when an update was abandoned for
    a bootstrap), for what reason, how many derivations were enumerated, and how long it took. `cost`: the whole of it
    by what was counted, in derivations of a bootstrap as they usually are; `other`: what the other choice should have
    cost. None where nothing was chosen. `spent`: what an update took, and `bootstrap`: what one takes, in
    derivations."""

    stratum: int
    relations: tuple[str, ...]
    how: str
    reason: str
    derivations: int
    seconds: float
    cost: int | None = None
    other: int | None = None
    spent: int | None = None
    bootstrap: int = 0

    @property
    def why(self) -> str:
        """The reason, and what came of it. Few ever look at it."""
        if self.spent is None:
            return self.reason
        return f"{self.reason}; it cost {self.spent:,}, a bootstrap takes {self.bootstrap:,}"


_WRITING = Lock()
"""Held while what was put off is written down: several threads may ask at once."""


class Work:
    """What an epoch cost, stratum by stratum. Strata that nothing touched are not listed."""

    __slots__ = ("_counters", "_later", "_later_derivations", "_strata")

    def __init__(self, strata: Iterable[StratumWork] = (), counters: Counters | None = None) -> None:
        self._strata = list(strata)
        self._later: list[Callable[[], Iterable[StratumWork]]] = []
        self._later_derivations = 0
        self._counters = counters

    def put_off(self, write: Callable[[], Iterable[StratumWork]], derivations: int) -> None:
        """Further strata, to be written down if somebody asks, whenever that is; they took so many derivations."""
        self._later.append(write)
        self._later_derivations += derivations

    def add(self, stratum: StratumWork) -> None:
        """A further stratum. What was put off before it still is."""
        self.put_off(lambda: (stratum,), stratum.derivations)

    @property
    def strata(self) -> list[StratumWork]:
        with _WRITING:
            for write in self._later:
                self._strata += write()
            self._later.clear()
            self._later_derivations = 0
        return self._strata

    @property
    def derivations(self) -> int:
        with _WRITING:
            return self._later_derivations + sum([stratum.derivations for stratum in self._strata])

    @property
    def counters(self) -> Counters:
        """What each phase moved; `derivations` are those of all strata until now."""
        if self._counters is None:
            self._counters = Counters()
        self._counters.derivations = self.derivations
        return self._counters


class Strategy(Protocol):
    """`update` runs between the backend's `begin` and `commit`; it may raise, and the caller rolls back."""

    name: ClassVar[str]
    annotation: ClassVar[Annotation]
    """What facts carry for it, with local levels."""

    @property
    def costs(self) -> CostModel | None:
        """What it has learnt about what updates cost, if that guides it."""

    def bootstrap(self, backend: Backend) -> Work:
        """Evaluates every stratum from the explicit facts."""

    def update(self, backend: Backend) -> Work:
        """Brings every stratum that the update under way affects to its new fixpoint."""

    def forecast(self, backend: Backend, stratum: LogicalStratum, changes: int, *, is_loss: bool) -> Forecast:
        """What it would choose for a stratum of which so many facts that it reads change; most go if `is_loss`."""
