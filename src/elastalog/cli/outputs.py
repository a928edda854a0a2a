"""Writes what the `.output` and `.printsize` directives of a program ask for, to files or to standard output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.display import show_character

if TYPE_CHECKING:
    from elastalog.analysis.program import Relation
    from elastalog.pipeline.files.write import Doubt
    from elastalog.session import Session

_LARGE = 1.5
"""A relation is written by several threads if it has this many times the facts that each thread would write on
average."""


def write_outputs(session: Session, output: str, jobs: int = 1, doubt: Doubt = None) -> list[Path]:
    """Writes what the directives ask for: to files in a folder, or with `-` to standard output. Returns the files
    written. Threads write a relation each, or a large one together. `doubt` is told of symbols that plain text cannot
    represent; without it they are errors."""
    relations = session.program.checked.relations.values()
    if output == "-":
        for relation in relations:
            _print_output(session, relation)
        sys.stdout.buffer.flush()
        return []
    from elastalog.pipeline.files.ahead import Ahead, Part
    from elastalog.pipeline.files.write import is_for_threads

    apart = [relation for relation in relations if jobs > 1 and _is_alone(relation)]
    # A file at a time is written by each thread, unless one would still be at work when all others are done.
    share = _LARGE * sum(len(session[relation.name]) for relation in apart) / jobs
    apart = [r for r in apart if len(session[r.name]) < share or not is_for_threads(r, session[r.name])]
    # What is made are lists of paths: all files may be begun.
    parts = (Part(partial(_write_output, session, relation, output, doubt), 0) for relation in apart)
    names = {relation.name for relation in apart}
    files: list[Path] = []
    with closing(Ahead(parts, jobs, "writing")) as written:
        if apart:
            written.start()
        for relation in relations:
            is_apart = relation.name in names
            files += next(written) if is_apart else _write_output(session, relation, output, doubt, jobs)
    sys.stdout.buffer.flush()
    return files


def _is_alone(relation: Relation) -> bool:
    """Whether everything that is written of a relation goes to files of its own."""
    told = [directive for directive in relation.directives if directive.kind in ("output", "printsize")]
    kinds = {directive.parameters.get("IO", "file") for directive in told if directive.kind == "output"}
    return len(told) == 1 and kinds <= {"file"} and "filename" not in told[0].parameters


def _write_output(session: Session, relation: Relation, output: str, doubt: Doubt, jobs: int = 1) -> list[Path]:
    from elastalog.pipeline.files.write import write_lines, write_output

    if any(directive.kind == "output" for directive in relation.directives):
        facts = session[relation.name]
        written = write_lines(relation, facts, output, doubt, jobs)
        return write_output(relation, facts.to_arrow(), output, doubt=doubt) if written is None else [written]
    _print_output(session, relation)
    return []


def _print_output(session: Session, relation: Relation) -> None:
    from elastalog.pipeline.files.write import print_facts, print_size

    name = relation.name
    out = fit_for_terminal(sys.stdout.buffer)
    for directive in relation.directives:
        if directive.kind == "output" and directive.parameters.get("IO") == "stdoutprintsize":
            print_size(name, len(session[name]), out)
        elif directive.kind == "output":
            # What `-D -` prints instead of a file has a header, as Soufflé's.
            headers = {} if directive.parameters.get("IO") == "stdout" else {"headers": "true"}
            print_facts(session.schemas[name], session[name].to_arrow(), out, headers | dict(directive.parameters))
        elif directive.kind == "printsize":
            print_size(name, len(session[name]), sys.stdout.buffer)


class _Terminal(io.RawIOBase):
    """Writes text so that nothing in it can move the cursor, reorder the line, or control the terminal."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", "backslashreplace")
        self._out.write("".join(c if c in "\n\t" else show_character(c) for c in text).encode())
        return len(data)

    def flush(self) -> None:
        self._out.flush()


def fit_for_terminal(out: BinaryIO) -> BinaryIO:
    """Standard output for facts: unchanged to a file or a program, escaped to a terminal."""
    return cast(BinaryIO, _Terminal(out)) if out.isatty() else out


def write_text(path: str, text: str) -> None:
    """Writes a text to a file, which appears complete or not at all."""
    from elastalog.pipeline.files.paths import replacing

    with replacing(Path(path)) as out:
        out.write(text.encode() + b"\n")


@contextmanager
def checked_output() -> Iterator[None]:
    """Turns a failure to write standard output during the block into an error. A reader that stops early is none."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        # What is left in the buffer would fail once more when Python closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = fault.strerror or str(fault)
        raise error("E0517.checked_output", reason=reason) from None
