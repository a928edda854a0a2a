from __future__ import annotations

import subprocess
import sys

import pytest

from elastalog.cli.exits import Terminated, exit_codes
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError, LimitReached


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ElastalogError([Diagnostic("E0230", "gone")]), 1),
        (LimitReached([Diagnostic("E0230", "too much")]), 3),
        (InternalError("test", "broken"), 1),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
    ],
)
def test_each_failure_has_its_exit_code(failure: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, exit_codes():
        raise failure
    assert end.value.code == code
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_an_end_that_comes_while_a_class_is_made_is_no_fault(end: type[BaseException], code: int) -> None:
    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise end

    with pytest.raises(SystemExit) as found, exit_codes():

        class Loaded:
            field = Field()

    assert found.value.code == code


def test_other_failures_pass() -> None:
    with pytest.raises(ZeroDivisionError), exit_codes():
        raise ZeroDivisionError


def test_a_closed_pipe_is_no_failure() -> None:
    code = (
        "import sys; from elastalog.cli.exits import exit_codes\n"
        "with exit_codes():\n    for i in range(10**5): print('x' * 100)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0
