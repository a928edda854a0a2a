"""Which code a device gets, and what happens where there is none, or no device that can be started."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import elastalog
from elastalog.backends.gpu import driver, starting
from elastalog.backends.gpu.driver import DeviceError
from elastalog.jit import objects
from tests.engine.judging import state_of
from tests.gpu.test_engine import CLOSURE, CYCLE


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's folder with the module for all architectures, as a wheel has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(driver, "compiled", lambda target: f"code for {target}".encode())
    driver.pack(str(objects.make_user_folder(driver.FAMILY).parent))


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    ("architecture", "target"),
    [(70, "sm_70"), (75, "sm_75"), (87, "sm_86"), (90, "sm_90"), (103, "sm_100"), (121, "sm_120"), (130, "compute_75")],
)
def test_a_device_gets_the_code_for_the_latest_architecture_it_runs(architecture: int, target: str) -> None:
    assert driver.code_for(architecture) == f"code for {target}".encode()


def test_code_is_compiled_once_where_no_wheel_brought_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    targets: list[str] = []

    def compiled(target: str) -> bytes:
        targets.append(target)
        return b"made here"

    monkeypatch.setattr(driver, "compiled", compiled)
    assert [driver.code_for(90) for _ in range(2)] == [b"made here"] * 2
    assert targets == ["sm_90"]
    kept = next(objects.user_folder(driver.FAMILY).glob("device.sm_90-*.o"))
    kept.write_bytes(kept.read_bytes()[:-1] + b"!")
    driver.code_for(90)
    assert targets == ["sm_90", "sm_90"]  # what was damaged is as good as absent


def test_without_code_and_compiler_there_is_no_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(driver.ctypes, "CDLL", _no_library)
    with pytest.raises(DeviceError, match="NVRTC, which compiles it, is not installed"):
        driver.code_for(90)


def _no_library(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize("engine", ["gpu", "auto"])
def test_a_device_that_cannot_be_started_is_none(
    engine: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = state_of(elastalog.open(CLOSURE, facts=CYCLE, engine="local"))
    for name in ("_thread", "_driver"):
        monkeypatch.setattr(starting, name, None)
    monkeypatch.setattr(starting, "_has_signs", lambda: True)
    monkeypatch.setattr(driver, "LIBRARY", "libnothing.so.1")
    caplog.set_level(logging.INFO, "elastalog.placement")
    if engine == "auto":
        starting.begin()
        assert starting.started() is None
    assert state_of(elastalog.open(CLOSURE, facts=CYCLE, engine=engine)) == expected
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (engine == "gpu")
    assert any("the GPU cannot be used: libnothing" in record.getMessage() for record in caplog.records)
