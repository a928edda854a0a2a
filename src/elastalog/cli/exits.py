"""How commands write to standard error, and how they end: the exit code of each kind of failure."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Literal, NoReturn, TypeAlias

import click

from elastalog.diagnostics.diagnostic import (
    Diagnostic,
    ElastalogError,
    InternalError,
    LimitReached,
    render_json,
    render_text,
)
from elastalog.late import dataclass

FINE: Final = 0
AT_FAULT: Final = 1
WRONG_USAGE: Final = 2
LIMIT: Final = 3
INTERRUPTED: Final = 130
TERMINATED: Final = 143

Verbosity: TypeAlias = Literal["quiet", "normal", "verbose"]

_MOST_SHOWN: Final = 50
_SHOWN: Final[dict[Verbosity, tuple[str, ...]]] = {
    "quiet": ("error",),
    "normal": ("error", "warning"),
    "verbose": ("error", "warning", "note"),
}


class Terminated(KeyboardInterrupt):
    """The system asks the command to end: like Ctrl-C, but final."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


_AT_WORK: Final = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, _terminate))


@contextmanager
def _signals_are_exceptions() -> Iterator[None]:
    """Turns Ctrl-C and SIGTERM into exceptions while a command is at work, so that the previous epoch stays intact and
    nothing is left behind. Before that, while modules are loaded and options are read, and afterwards, they end the
    process at once. Signals that have a handler already are left alone; only the main thread has signals."""
    is_main = threading.current_thread() is threading.main_thread()
    minded = [
        (number, handler) for number, handler in _AT_WORK if is_main and signal.getsignal(number) is signal.SIG_DFL
    ]
    try:
        for number, handler in minded:
            signal.signal(number, handler)
        yield
    finally:
        for number, _ in minded:
            signal.signal(number, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class Console:
    """Standard error. `form`: how diagnostics are written, `text` or `json`; some commands write their answers in it,
    too."""

    form: str = "text"
    verbosity: Verbosity = "normal"

    @property
    def is_quiet(self) -> bool:
        return self.verbosity == "quiet"

    @property
    def is_verbose(self) -> bool:
        return self.verbosity == "verbose"

    @property
    def is_watched(self) -> bool:
        """Whether the user sees progress: on a terminal, or with `-v`."""
        return self.is_verbose or (not self.is_quiet and sys.stderr.isatty())

    def say(self, line: str) -> None:
        """Reports what was done, unless the user asked for quiet."""
        if not self.is_quiet:
            click.echo(line, err=True)

    def warn(self, message: Warning | str, *_: object, **__: object) -> None:
        """Shows a Python warning, in place of `warnings.showwarning`."""
        found = getattr(message, "diagnostic", None)
        self.say(f"warning: {message}") if found is None else self.show([found])

    def show(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Writes the diagnostics that the verbosity asks for: text, coloured on a terminal, or a JSON list. As text,
        only the first of a great many are shown."""
        shown = [diagnostic for diagnostic in diagnostics if diagnostic.severity in _SHOWN[self.verbosity]]
        if self.form == "json":
            click.echo(render_json(shown), err=True)
            return
        color = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        first = sorted(shown, key=lambda diagnostic: diagnostic.severity != "error")[:_MOST_SHOWN]
        kept = set(map(id, first))
        for diagnostic in shown:
            if id(diagnostic) in kept:
                click.echo(render_text(diagnostic, color=color) + "\n", err=True, color=color)
        if len(shown) > _MOST_SHOWN:
            click.echo(f"… and {len(shown) - _MOST_SHOWN} more", err=True)


@contextmanager
def exit_codes(console: Console | None = None, left: Callable[[], str] = str) -> Iterator[None]:
    """Runs a command and ends it with the exit code of its failure, diagnostics on standard error. `left` says what an
    interrupted command leaves behind."""
    told = console or Console()
    try:
        with _signals_are_exceptions():
            yield
            sys.stdout.flush()
    except LimitReached as limit:
        told.show(limit.diagnostics)
        sys.exit(LIMIT)
    except ElastalogError as fault:
        told.show(fault.diagnostics)
        sys.exit(AT_FAULT)
    except InternalError as fault:
        click.echo(str(fault), err=True)
        sys.exit(AT_FAULT)
    except (KeyboardInterrupt, click.Abort) as end:
        _end_interrupted(end, left())
    except RuntimeError as fault:
        # Until Python 3.12, one that comes while a module is loaded may come as the cause of another exception.
        if not isinstance(fault.__cause__, KeyboardInterrupt):
            raise
        _end_interrupted(fault.__cause__, left())
    except BrokenPipeError:
        # The reader of our output has closed it. Python would complain once more when it closes standard output.
        _silence_output()
        sys.exit(FINE)
    except OSError as fault:
        # A file that cannot be read or written is a diagnostic where it is used: what is left is standard output.
        end_without_output(fault)


def _end_interrupted(end: BaseException, left: str) -> NoReturn:
    if (code := code_of(end)) == INTERRUPTED:
        click.echo(f"interrupted: {left}" if left else "interrupted", err=True)
    sys.exit(code)


def end_without_output(fault: OSError) -> NoReturn:
    """Ends a command whose standard output cannot be written."""
    _silence_output()
    click.echo(f"error: standard output cannot be written: {(fault.strerror or str(fault)).lower()}", err=True)
    sys.exit(AT_FAULT)


def code_of(end: BaseException) -> int:
    """The exit code of a command that was asked to end."""
    return TERMINATED if isinstance(end, Terminated) else INTERRUPTED


def _silence_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
