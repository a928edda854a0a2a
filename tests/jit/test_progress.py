"""Compilation says what it does: a line that changes on a terminal, one that does not elsewhere."""

from __future__ import annotations

import os
from io import StringIO

import pytest

from elastalog.backends.kernel.compile.warm import Progress, announced_compilation, message, shown_compilation
from elastalog.jit import building


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_how_far_it_is() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    for done in range(3):
        progress(done, 2)
    lines = [
        "compiling 2 operators, once per machine: about 5 s",
        "compiling operators, once per machine: 1 of 2, 0 s",
        "compiled 2 operators in 0 s",
    ]
    assert terminal.getvalue() == "".join(f"\r\033[K{line}" for line in lines) + "\n"


def test_a_file_is_told_at_the_start_and_at_the_end() -> None:
    file = StringIO()
    progress = Progress(file)
    for done in range(3):
        progress(done, 2)
    assert file.getvalue() == "compiling 2 operators, once per machine: about 5 s\ncompiled 2 operators in 0 s\n"


def test_the_time_is_told_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert message(88) == "compiling 88 operators, once per machine: about 45 s"


def test_nothing_is_said_outside_the_block() -> None:
    said: list[str] = []
    file = StringIO()
    before = list(building._reports)
    with announced_compilation(said.append), shown_compilation(file):
        assert len(building._reports) == len(before) + 2
        for report in building._reports[len(before) :]:
            report(0, 1)
            report(1, 1)
    assert building._reports == before
    assert said == [message(1)]
    assert file.getvalue() == f"{message(1)}\ncompiled 1 operators in 0 s\n"
