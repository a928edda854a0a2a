"""Whether a stratum that the kernel has begun goes on faster on a device, from what has been seen of it so far. What a user
waits for is counted: the rest of the device's start, the copies there and back, launches, and that the rest is a guess.

Nobody knows how many facts will follow. As long as rounds find about as many as ever, it is taken for as many as there
are: then the time that is lost by going on too long here is at most about the time that was spent here. When rounds have
become smaller, little is left, and it stays here.
"""

from __future__ import annotations

from elastalog.backends.kernel.bootstrap.begun import SoFar
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Seconds on a machine: of the start of its device, of a fact that is copied there and sorted, of one that is found
    there and copied back, of work that is there whatever the size, of a round."""

    start: float = 0.8
    sent: float = 12e-9
    found: float = 15e-9
    launch: float = 0.03
    round: float = 1.5e-3


H200 = DeviceCosts()
"""As measured, for a stratum of two or three rules; other devices are not much slower at what is waited for."""

_GAIN = 1.5
"""How many times faster it has to be: both sides are guesses."""
_LEAST = 0.15
"""Seconds that have to be left: less is not worth any thought."""
_EBBING = 0.5
"""Rounds that find less than this part of what the largest has found come to an end."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that the rest takes: here, and on the device (`there`), without the wait for its start."""

    here: float
    there: float

    def is_better_there(self, wait: float) -> bool:
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
    return Forecast(here, there)
