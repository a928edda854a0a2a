"""What the scripted store must hold."""

from __future__ import annotations

from pathlib import Path

import elastalog
from tests.storage.scripted import expected_states, state_of

EXPECTED = expected_states()


def require_kept(store: Path | elastalog.Store, epoch: int) -> None:
    """A store that is opened now is at an epoch, with its state."""
    with elastalog.open(store=store) as session:
        assert (session.epoch, state_of(session)) == (epoch, EXPECTED[epoch])
