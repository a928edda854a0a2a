"""Programs of tests are small: on a real device, too, they go there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from elastalog.backends.gpu import arrays, place


@pytest.fixture(autouse=True)
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_ASKED", "LEAST_ONCE"):
        monkeypatch.setattr(place, name, 0)


class Claims:
    """Counts how often memory is asked for; there is none at the claim that is to fail, counted from 1."""

    def __init__(self) -> None:
        self.number = self.failing = 0

    def claim(self, size: int) -> None:
        self.number += 1
        if self.number == self.failing:
            raise arrays.NoRoom

    def each(self) -> Iterator[None]:
        """Has every claim fail that has been made so far, one after the other."""
        for failing in range(1, self.number + 1):
            self.number, self.failing = 0, failing
            yield


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Claims:
    counted = Claims()
    monkeypatch.setattr(arrays.Arrays, "claim", lambda self, size: counted.claim(size))
    return counted
