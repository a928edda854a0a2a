"""The first run on a machine compiles the operators of the kernel; later runs find them in numba's cache.

`python -m elastalog.backends.kernel.compile.warm` fills the cache beforehand.
"""

from __future__ import annotations

import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PACKAGES = (
    "elastalog.backends.kernel",
    "elastalog.backends.spark",
    "elastalog.relations",
)
"""Where operators lie, in sub-packages too."""

MESSAGE = "compiling the kernel, once per machine…"

_PATIENCE = 1.0
"""Seconds of compilation that pass in silence where nobody watches."""


@contextmanager
def announced_compilation(announce: Callable[[str], None], *, at_once: bool) -> Iterator[None]:
    """Says so, once, when an operator has to be compiled during the block: with the first one, or when compiling takes
    more than a second. Enter it before the kernel is imported."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]  # numba has no types
        began: float | None = None
        is_done = False

        def on_start(self, event: Any) -> None:
            if not getattr(event.data["dispatcher"], "__module__", "").startswith("elastalog."):
                return
            if self.began is None:
                self.began = time.monotonic()
            if not self.is_done and (at_once or time.monotonic() - self.began > _PATIENCE):
                self.is_done = True
                announce(MESSAGE)

        def on_end(self, event: Any) -> None:
            pass

    announcer = Announcer()
    event.register("numba:compile", announcer)
    try:
        yield
    finally:
        event.unregister("numba:compile", announcer)


def warm() -> None:
    """Compiles every operator that is not in the cache."""
    from elastalog.jit.operators import Operator

    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Operator):
                    value.compile()


if __name__ == "__main__":
    with announced_compilation(lambda message: print(message, file=sys.stderr, flush=True), at_once=True):
        warm()
