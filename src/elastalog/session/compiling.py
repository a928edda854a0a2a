"""The first session on a machine compiles what evaluates: whoever waits for that is told so, once in a process."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack

from elastalog.backends.kernel.compile.warm import announced_compilation

log = logging.getLogger("elastalog.session")

_LISTENING = ExitStack()
"""Holds the listener for the life of the process: the first update compiles too."""
_is_listening = False


def announce_compilation() -> None:
    """From now on compiling is said in the log, and on standard error of a terminal or a notebook."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        _LISTENING.enter_context(announced_compilation(_tell))


def _tell(message: str) -> None:
    log.info(message)
    if _is_watched() and not _is_command():
        print(f"elastalog: {message}", file=sys.stderr, flush=True)


def _is_watched() -> bool:
    is_notebook = "ipykernel" in sys.modules
    return is_notebook or (sys.stderr is not None and sys.stderr.isatty())


def _is_command() -> bool:
    """Whether the command line, which says so itself, has opened the session."""
    click = sys.modules.get("click")
    return click is not None and click.get_current_context(silent=True) is not None
