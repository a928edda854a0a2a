"""Ctrl-C before a command is at work ends the process without a word; afterwards it is an exception."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""As from a terminal: tests may run in the background, where shells have interrupts ignored."""

INTERRUPT = """
import os
os.kill(os.getpid(), 2)
"""

LOADED = """
import elastalog.__main__
from elastalog.cli.main import cli
cli.get_command(None, "check")
"""

AT_WORK = """
from elastalog.cli.exits import exit_codes
with exit_codes():
    os.kill(os.getpid(), 2)
"""


def ended(script: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", HEARING + script], capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize("before", ["import elastalog.__main__", LOADED])
def test_an_interrupt_before_a_command_is_at_work_ends_it_without_a_word(before: str) -> None:
    assert ended(before + INTERRUPT) == (-signal.SIGINT, "")


def test_an_interrupt_of_a_command_at_work_is_its_exit_code() -> None:
    assert ended(f"import os\n{LOADED}{AT_WORK}") == (130, "")


def test_who_ignores_interrupts_is_left_alone() -> None:
    script = f"import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{LOADED}{AT_WORK}"
    assert ended(script) == (0, "")


def test_next_to_nothing_is_loaded_before_interrupts_are_seen_to() -> None:
    script = "import sys\nbefore = set(sys.modules)\nimport elastalog.__main__\nprint(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert {"typing", "enum", "signal", "re"}.isdisjoint(loaded.split())
