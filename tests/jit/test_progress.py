"""Compilation says what it does: a line that changes on a terminal, one that does not elsewhere."""

from __future__ import annotations

from io import StringIO

from elastalog.backends.kernel.compile.warm import Progress, announced_compilation, shown_compilation
from elastalog.jit import building


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_how_far_it_is() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    for done in range(3):
        progress(done, 2)
    lines = [f"\rcompiling operators {done} of 2, once per machine" for done in range(3)]
    assert terminal.getvalue() == "".join(lines) + "\n"


def test_a_file_is_told_once() -> None:
    file = StringIO()
    progress = Progress(file)
    for done in range(3):
        progress(done, 2)
    assert file.getvalue() == "compiling operators, once per machine\n"


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
    assert said == ["compiling operators, once per machine"]
    assert file.getvalue() == "compiling operators, once per machine\n"
