"""SIGTERM ends every command as Ctrl-C does: soon, with the epoch before, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import elastalog

GROWING = ".decl n(x: number)\n.input n\n.output n\nn(x + 1) :- n(x), x >= 0.\n"
"""Ends for negative numbers only."""


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "elastalog", *arguments],
        cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program and a fact from which it ends."""
    (tmp_path / "p.dl").write_text(GROWING)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "n.facts").write_text("-1\n")
    return tmp_path


def ended(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    """How a command ends, a while after it has begun."""
    while not is_listening(process.pid):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)  # it is reading, planning or evaluating by now: whichever it is, it ends the same way
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return process.returncode, errors


def is_listening(process: int) -> bool:
    """Whether a process has a handler of SIGTERM, as commands do once they have begun."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "command"),
    [
        (signal.SIGTERM, ("run", "p.dl", "-D", "out")),
        (signal.SIGTERM, ("explain", "p.dl", "n(5)")),
        (signal.SIGTERM, ("shell", "p.dl")),
        (signal.SIGTERM, ("stream", "p.dl", "--updates", "updates", "-D", "out")),
        (signal.SIGTERM, ("compare", "p.dl", "--updates", "updates")),
        (signal.SIGINT, ("run", "p.dl", "-D", "out")),
    ],
)
def test_an_evaluation_ends(folder: Path, number: signal.Signals, command: tuple[str, ...]) -> None:
    (folder / "facts" / "n.facts").write_text("0\n")
    (folder / "updates").mkdir()
    (folder / "updates" / "1.diff").write_text("+n(-7).\n")
    process = started(folder, *command, "-F", "facts")
    code, _ = ended(process, number)
    assert code == 128 + number
    assert sorted(os.listdir(folder)) == ["facts", "p.dl", "updates"]


WHILE_STARTING = """
import _posixsubprocess, os, signal, subprocess, sys

start = _posixsubprocess.fork_exec

def start_and_end(given, *rest):
    process = start(given, *rest)
    if not "resource_tracker" in str(given):
        os.kill(os.getpid(), signal.SIGTERM)
    return process

_posixsubprocess.fork_exec = subprocess._fork_exec = start_and_end
from elastalog.__main__ import main
sys.exit(main())
"""


@pytest.mark.slow
def test_a_comparison_ends_in_silence_while_it_starts_its_process(folder: Path) -> None:
    """SIGTERM comes when the process is there, and before it is told what to do."""
    (folder / "updates").mkdir()
    (folder / "updates" / "1.diff").write_text("+n(-7).\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", WHILE_STARTING, "compare", "p.dl", "-F", "facts", "--updates", "updates"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (143, "")


@pytest.mark.slow
def test_an_update_of_a_store_ends_and_leaves_the_epoch_before(folder: Path) -> None:
    elastalog.open(folder / "p.dl", folder / "facts", store=folder / "store").close()
    (folder / "1.diff").write_text("+n(0).\n")
    process = started(folder, "apply", "store", "1.diff")
    assert ended(process)[0] == 143
    with elastalog.open(store=folder / "store") as session:
        assert (session.epoch, set(session["n"]), session.engine.recovery) == (1, {(-1,)}, ())
        session.apply({"n": [(-5,)]})
        assert session.epoch == 2
