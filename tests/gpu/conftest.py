"""Programs of tests are small: on a real device, too, they go there."""

from __future__ import annotations

import pytest

from elastalog.backends.gpu import place


@pytest.fixture(autouse=True)
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_ASKED", "LEAST_ONCE"):
        monkeypatch.setattr(place, name, 0)
