"""Starting the device, which takes part of a second: in a thread, beside what else there is to do, once a process. What
it took is kept for the next process of the user on this machine."""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.backends.gpu.driver import Driver

log = logging.getLogger("elastalog.placement")

USUAL = 0.8
"""Seconds that a start takes on a machine where none has been seen."""

_lock = threading.Lock()
_thread: threading.Thread | None = None
_driver: Driver | None = None
_began = 0.0


def is_there() -> bool:
    """Whether there may be a device: nothing is started, or imported, to find out."""
    return _has_signs() and (_thread is None or _thread.is_alive() or _driver is not None)


@cache  # every session asks
def _has_signs() -> bool:
    """Linux shows that there is a device, by itself or through Windows."""
    return any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg")))


def begin() -> None:
    """Starts the device unless that has been done, and does not wait for it."""
    global _thread, _began
    with _lock:
        if _thread is None:
            _began = time.monotonic()
            _thread = threading.Thread(target=_start, name="elastalog-device")  # who leaves waits for it: it is halfway
            _thread.start()


def begin_ahead(is_recursive: bool, facts: Callable[[], int]) -> None:
    """Starts the device unasked, while about `facts()` facts are being read, if there are enough of them to pay."""
    if is_recursive and is_there() and has_cores() and facts() >= SETTINGS.device_start_ahead:
        begin()


def has_cores() -> bool:
    """Whether a start beside the kernel takes nothing away from it."""
    return (os.cpu_count() or 1) >= SETTINGS.device_start_cores


def is_ready() -> bool:
    """Whether the device has been started."""
    return _driver is not None


def seconds_left() -> float:
    """What is left of the start, as far as is known; 0 where there is nothing to wait for any more."""
    if _thread is None:
        return seconds()
    return max(seconds() - (time.monotonic() - _began), 0.0) if _thread.is_alive() else 0.0


def started() -> Driver | None:
    """The device, when it has been started; None if there is none."""
    if not is_there():
        return None
    begin()
    assert _thread is not None
    _thread.join()
    return _driver


def _start() -> None:
    global _driver
    from elastalog.backends.gpu.driver import DeviceError, Driver

    try:
        driver = Driver()
    except (OSError, DeviceError, MemoryError, AttributeError) as fault:  # no library, no device, or an old driver
        log.info("the GPU cannot be used: %s", fault)
        return
    _driver = driver
    with suppress(OSError):
        if abs(driver.seconds - seconds()) > 0.1:
            file = _notes()
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(json.dumps({"machine": platform.node(), "start": round(driver.seconds, 3)}))


def seconds() -> float:
    """What a start takes: what the last one on this machine took."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        notes = json.loads(_notes().read_text())
        if notes["machine"] == platform.node():
            return min(max(float(notes["start"]), 0.0), 60.0)
    return USUAL


def _notes() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root, "elastalog", "device.json")
