"""What a backend says of its work: what clauses cost, where strata are evaluated, how much memory relations take."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.late import dataclass
from elastalog.planning.logical import Clause


@dataclass(frozen=True, slots=True)
class ClauseCost:
    """What a clause cost in the last evaluation of its stratum from the start, in this process."""

    stratum: int
    clause: Clause
    derivations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StratumElsewhere:
    """The last evaluation of a stratum from the start in another place than this process. `transfer`: the seconds in
    which facts went there and came back, among `seconds`. `bytes`: by relation, what its facts took there; `peak`: the
    most that was in use."""

    stratum: int
    place: str
    seconds: float
    transfer: float
    rounds: int
    derivations: int
    bytes: Mapping[str, int]
    peak: int


NO_OTHER_PLACE = "there is no GPU and no cluster, or none was wanted"
"""Why everything is evaluated in this process."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a stratum is evaluated from the start, `kernel`, `gpu` or `spark`, and why there: what the log says in one
    line."""

    stratum: int
    relations: tuple[str, ...]
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What things cost: clauses in the order of evaluation, by relation the memory of this process that its facts,
    annotations and indexes take, strata that were evaluated elsewhere, and where each is."""

    clauses: tuple[ClauseCost, ...]
    bytes: Mapping[str, int]
    elsewhere: tuple[StratumElsewhere, ...] = ()
    places: tuple[Placed, ...] = ()
