"""Ctrl-C and SIGTERM end the process without a word until a command is at work, and after; while it is, they are
exceptions. Where someone has decided about a signal, nothing changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elastalog.cli.exits import exit_codes
from elastalog.diagnostics.interrupts import uninterrupted

HEARING = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""As from a terminal: tests may run in the background, where shells have interrupts ignored."""

LOADED = """
import elastalog.__main__
from elastalog.cli.main import cli
cli.get_command(None, "check")
"""

SENT = "os.kill(os.getpid(), {number})\n"

AT_WORK = f"""
from elastalog.cli.exits import exit_codes
with exit_codes():
    {SENT}
"""

WHILE_OPTIONS_ARE_READ = """
import click, sys
import elastalog.__main__

def parse_args(self, ctx, arguments, read=click.Command.parse_args):
    if self.name == "check":
        os.kill(os.getpid(), {number})
    return read(self, ctx, arguments)

click.Command.parse_args = parse_args
sys.argv = ["elastalog", "check", "p.dl"]
elastalog.__main__.main()
"""

BEFORE_THE_BLOCK = """
import sys
import elastalog.__main__, elastalog.cli.help

def trace(frame, event, argument):
    if frame.f_code.co_name == "exit_codes" and event == "return":
        sys.settrace(None)
        os.kill(os.getpid(), {number})
    return trace

sys.argv = ["elastalog", "explain-error", "E0100"]
sys.settrace(trace)
elastalog.__main__.main()
"""
"""The signal comes when it is an exception already, and before the block that answers it is entered."""

WHILE_A_TEXT_IS_RUN = (
    HEARING
    + """
import elastalog.__main__, elastalog.cli.main
from elastalog.cli.exits import exit_codes

def command():
    with exit_codes():
        exec("os.kill(os.getpid(), signal.SIGINT)")

elastalog.cli.main.main = command
elastalog.__main__.main()
"""
)
"""As when a dataclass is made: Python remembers that such a text was left by Ctrl-C."""

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def ended(script: str, number: signal.Signals) -> tuple[int, str]:
    script = HEARING + script.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return done.returncode, done.stderr


@BOTH
@pytest.mark.parametrize("before", ["import elastalog.__main__\n" + SENT, LOADED + SENT, WHILE_OPTIONS_ARE_READ])
def test_a_signal_before_a_command_is_at_work_ends_it_without_a_word(number: signal.Signals, before: str) -> None:
    assert ended(before, number) == (-number, "")


@BOTH
@pytest.mark.parametrize("work", [LOADED + AT_WORK, BEFORE_THE_BLOCK])
def test_a_signal_to_a_command_at_work_is_its_exit_code(number: signal.Signals, work: str) -> None:
    assert ended(work, number) == (
        128 + number,
        "interrupted\n" if (work, number) == (LOADED + AT_WORK, signal.SIGINT) else "",
    )


def test_an_interrupt_while_a_text_is_run_is_the_exit_code_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(WHILE_A_TEXT_IS_RUN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@BOTH
def test_a_signal_after_the_work_ends_it_without_a_word(number: signal.Signals) -> None:
    worked = "from elastalog.cli.exits import exit_codes\nwith exit_codes(): pass\n"
    assert ended(LOADED + worked + SENT, number) == (-number, "")


@BOTH
def test_who_ignores_a_signal_is_left_alone(number: signal.Signals) -> None:
    ignored = "signal.signal({number}, signal.SIG_IGN)\n"
    assert ended(ignored + LOADED + AT_WORK, number) == (0, "")


def test_signals_are_the_main_threads() -> None:
    seen: list[object] = []

    def work() -> None:
        with exit_codes():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_signal_waits_for_what_must_not_be_interrupted() -> None:
    done: list[str] = []
    with pytest.raises(SystemExit) as end:
        work_uninterrupted(done)
    assert (done, end.value.code) == (["all"], 143)


def work_uninterrupted(done: list[str]) -> None:
    with exit_codes(), uninterrupted():
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("all")


def test_next_to_nothing_is_loaded_before_interrupts_are_seen_to() -> None:
    script = "import sys\nbefore = set(sys.modules)\nimport elastalog.__main__\nprint(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert {"typing", "enum", "signal", "re"}.isdisjoint(loaded.split())
