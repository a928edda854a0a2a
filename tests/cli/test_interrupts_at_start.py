"""Ctrl-C before the command is loaded ends the process without a word; afterwards it is an exception."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal
import elastalog.__main__
from elastalog.cli.main import cli
{before}
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize(("before", "is_told"), [("", False), ("cli.get_command(None, 'check')", True)])
def test_an_interrupt_is_an_exception_once_the_command_is_loaded(before: str, is_told: bool) -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT.format(before=before)], capture_output=True, text=True)
    assert ended.returncode == -2
    assert ("KeyboardInterrupt" in ended.stderr) == is_told


def test_who_ignores_interrupts_is_left_alone() -> None:
    script = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)" + SCRIPT.format(
        before="cli.get_command(None, 'check')"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
