"""Programs of tests are small: on a real device, too, they go there. Where there is none, the tests that are marked so
run on one that is emulated, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from elastalog.backends.gpu import arrays, driver, starting
from elastalog.settings import SETTINGS
from tests.gpu import emulation


@pytest.fixture(autouse=True)
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("device_asked_from", "device_once_from"):
        monkeypatch.setattr(SETTINGS, name, 0)


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


@pytest.fixture(scope="session")
def emulated_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("the emulated device is compiled, and there is no g++")
    return emulation.build(tmp_path_factory.mktemp("emulated"))


@pytest.fixture
def emulated(emulated_library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> arrays.Arrays:
    """A device that is emulated, in place of the machine's."""
    monkeypatch.setattr(starting, "_notes", lambda: tmp_path / "device.json")
    monkeypatch.setattr(driver, "LIBRARY", str(emulated_library))
    monkeypatch.setattr(driver, "code_for", lambda architecture: b"")
    monkeypatch.setattr(starting, "_has_signs", lambda: True)
    for name in ("_thread", "_driver"):
        monkeypatch.setattr(starting, name, None)
    found = arrays.on_device()
    assert found is not None
    return found
