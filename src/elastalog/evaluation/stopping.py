"""When to abandon an update for a bootstrap: at the end that should cost least, of those that the guarantee allows.

An update that is allowed a share t of a bootstrap costs x, its share, if that is within t, and t + 1 otherwise; less
where it deletes, since what is lost need not be made again, and x says how much that may be. What x will be is believed
by experience in most cases, and could be anything in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from elastalog.backends.watch import WITH_REST
from elastalog.evaluation.past_updates import Expectation, likely_costs
from elastalog.late import dataclass

FACTOR: Final = 8
"""What the choice never costs more than, in terms of the better one, in sum over the epochs of a stratum."""

LEAST_END: Final = 1 / (FACTOR - 1)
"""The least share of a bootstrap after which an update may be abandoned. Whoever does so at t has spent t + 1, where
the better choice takes the lesser of t and 1 at least: FACTOR times that is enough from here on."""

LARGEST_END: Final = (FACTOR - 1) / WITH_REST
"""The largest: extended when all is lost (see `Watch.extend`) it allows FACTOR - 1, and then there is the bootstrap."""

_ENDS = (LEAST_END, 0.2, 1.0, 1.3, 1.7, 2.2, LARGEST_END)
"""Those that are considered. None in between: an update that should end within a fifth of a bootstrap and does not will
hardly end soon."""

_MOST = 10.0
"""No update costs more than so many bootstraps, as far as beliefs go."""

_ANYTHING = 0.2
"""In how many cases experience tells nothing."""

_CASES = 9
"""Costs that are considered then."""

_LEAST_LEFT = 0.05
"""The share of a bootstrap that is left whatever is lost: facts are compared with those that were there."""

_DIFFERENCE = 0.015
"""Costs that differ by less are the same: then the end nearest to 1, the safest, is taken."""


@dataclass(frozen=True, slots=True)
class End:
    """The share of a bootstrap that an update should be allowed, what it should `cost` then, and what the bootstrap
    should cost `instead` of it: all in terms of the bootstrap that there would be if nothing were lost."""

    share: float
    cost: float
    instead: float


def best_end(expected: Expectation | None, weight: float, anew: float, spent: float = 0.0, lost: float = 0.0) -> End:
    """Where to end an update, of which so much is `spent` already; a bootstrap costs `anew` where a derivation of the
    update costs `weight`. Every derivation of it means that the bootstrap has so many less to make, `lost`, as far as
    it has any."""
    if expected is None:
        return End(1.0, 1.0, 1.0)
    begun = spent * weight / anew
    believed = [(min(x * weight / anew, _MOST), share) for x, share in likely_costs(expected)]
    believed = [(x, share) for x, share in believed if x > begun] or [(2 * begun, 1.0)]
    least = max(begun, 0.02)
    most = max(min(expected.most * weight / anew, _MOST), 2 * least)
    anything = [(least * (most / least) ** (case / (_CASES - 1)), 1.0) for case in range(_CASES)]
    likely, other = _means(believed, lost), _means(anything, lost)
    *costs, instead = [(1 - _ANYTHING) * one + _ANYTHING * two for one, two in zip(likely, other, strict=True)]
    share, cost = min(
        zip(_ENDS, costs, strict=True), key=lambda found: (round(found[1] / _DIFFERENCE), abs(log(found[0])))
    )
    return End(share, cost, instead)


def _means(costs: Sequence[tuple[float, float]], lost: float) -> list[float]:
    """What is to be expected of each end, and of a bootstrap instead, given the costs of the update in ascending
    order, and how likely they are."""
    rests = [share * max(1 - lost * x, _LEAST_LEFT) for x, share in costs]
    whole = beyond = sum([share for _, share in costs])
    rest = instead = sum(rests)
    found, within, at = [], 0.0, 0
    for end in _ENDS:
        while at < len(costs) and costs[at][0] <= end:
            x, share = costs[at]
            within += share * x
            beyond -= share
            rest -= rests[at]
            at += 1
        found.append((within + beyond * end + rest) / whole)
    return [*found, instead / whole]
