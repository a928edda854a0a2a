"""Whether a stratum that the kernel has begun goes on faster on a device, from what has been seen of it so far. The
forecast counts what a user waits for: the copies there and back, launches, and that the rest is a guess.

How many facts will follow is not known. As long as rounds find about as many as ever, the rest is taken for as many as
there are: then the time that is lost by going on too long here is at most about the time that was spent here. When
rounds have become smaller, little is left, and the stratum stays here. The kernel does not wait for the start of the
device, which is therefore begun before anything is certain: when a stratum has taken part of the time that a start
takes, and found much.
"""

from __future__ import annotations

import os

from elastalog.backends.kernel.bootstrap.handover import SoFar
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Seconds of a fact that is copied there and sorted, of one that is found there and copied back, of what there is
    to do whatever the size, and of a round."""

    sent: float = 3e-9
    found: float = 5e-9
    launch: float = 0.03
    round: float = 1.2e-3


H200 = DeviceCosts()
"""Measured on an H200: a fact that is found took 1.1 to 11 ns, a round 0.5 to 1.2 ms."""

_GAIN = 1.5
"""How many times faster it has to be: both sides are guesses."""
_LEAST = 0.15
"""Seconds that have to be left: less is not worth any thought."""
_EBBING = 0.5
"""Rounds that find less than this part of what the largest has found come to an end."""
_START_AFTER = 0.3
"""Part of the time of a start after which a stratum has taken long enough for one."""
_START_FROM = 90_000
"""Facts that a stratum must have found by then."""
_START_CORES = 4
"""Processors of a machine on which a start takes nothing away from the kernel."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that the rest takes: here, and on the device (`there`). `is_ebbing`: rounds are becoming small."""

    here: float
    there: float
    is_ebbing: bool = False

    def is_better_there(self, wait: float = 0.0) -> bool:
        """Whether the device is faster, if it can begin after some seconds, in which the kernel goes on."""
        return self.here > _LEAST and self.here - wait > _GAIN * self.there

    def __str__(self) -> str:
        return f"about {self.here:.2f} s here, {self.there:.2f} s there"


def forecast(so_far: SoFar, costs: DeviceCosts = H200) -> Forecast:
    """Of a stratum that is begun here."""
    is_ebbing = so_far.delta < _EBBING * so_far.most
    rest = 2 * so_far.delta if is_ebbing else so_far.found
    pace = so_far.lately / so_far.lately_seconds if so_far.lately_seconds > 0 else 0.0
    here = rest / pace if pace > 0 else 0.0
    rounds = rest / max(so_far.delta, 1)
    there = costs.launch + (so_far.found + so_far.read) * costs.sent + rest * costs.found + rounds * costs.round
    return Forecast(here, there, is_ebbing)


def is_worth_a_start(so_far: SoFar, guess: Forecast, start: float) -> bool:
    """Whether a device that takes some seconds to start had better be started beside the kernel."""
    has_cores = (os.cpu_count() or 1) >= _START_CORES
    is_long = so_far.seconds >= _START_AFTER * start and so_far.found >= _START_FROM and not guess.is_ebbing
    return (is_long and has_cores) or guess.is_better_there(start)
