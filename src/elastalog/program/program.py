"""A program that has been read and checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from elastalog.analysis.check import check, place
from elastalog.analysis.program import CheckedProgram
from elastalog.diagnostics.arguments import require_path, require_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Source, Span
from elastalog.program.equivalences import with_closures
from elastalog.syntax.collection import without_collection
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Clause, Tree

LARGEST_FILE: Final = 256 * 2**20
"""The size in bytes beyond which a program file is refused."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program without errors: `tree` is what was written, `checked` what it means, `warnings` what is worth a look
    (warnings and notes, sorted by place). Nothing in it changes, so that threads may share one."""

    tree: Tree
    checked: CheckedProgram
    warnings: tuple[Diagnostic, ...] = ()

    @classmethod
    def parse(cls, text: str, name: str = "<text>") -> Program:
        """Read and check a program text. Raises ElastalogError with every diagnostic when it has errors; `name` stands
        for the file name in them."""
        require_text("a program text is a text", text, "give the text itself; `Program.load` takes a path")
        checked = None
        with without_collection():
            tree, found = parse(Source(name, text))
            tree = with_closures(tree)
            if not any(diagnostic.severity == "error" for diagnostic in found):
                checked, more = check(tree)
                found = (*found, *more)
        found = tuple(sorted(found, key=place))
        if checked is None:
            raise ElastalogError(found)
        return cls(tree, checked, found)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Read and check a program file in UTF-8. Raises ElastalogError when it cannot be read or has errors."""
        require_path("a program file is named by its path", path, "give a text or a `Path`")
        name = os.fspath(path)
        return cls.parse(read_program_text(name), name)


def declarations_in(text: str) -> tuple[str, ...]:
    """What a program text declares: types, relations, directives and pragmas, printed, in order."""
    tree, _ = parse(Source("<text>", text))
    return tuple(print_item(item) for item in tree.items if not isinstance(item, Clause))


def read_program_text(path: str) -> str:
    """The text of a program file. Raises ElastalogError when it cannot be read, is too large, or is not UTF-8."""
    try:
        if (Path(path) / "CURRENT").is_file():
            raise _unreadable(path, "it is a store", "`show`, `query`, `explain`, `debug` and `apply` take stores")
        if Path(path).is_dir():
            raise _unreadable(path, "it is a folder", "give the program file inside it")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file", "check the path, relative to the current folder") from None
    except PermissionError:
        raise _unreadable(path, "reading it is not permitted", "change the permissions of the file") from None
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise _unreadable(path, reason.lower(), "give a file that can be read") from None
    if len(data) > LARGEST_FILE:
        raise _unreadable(
            path, f"it is larger than {LARGEST_FILE // 2**20} MiB", "move the facts out of the program into fact files"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _not_utf8(path, data, fault.start) from None


def _unreadable(path: str, reason: str, advice: str) -> ElastalogError:
    message = f"the program cannot be read: {reason}"
    return ElastalogError((Diagnostic("E0230", message, help=advice, location=path),))


def _not_utf8(path: str, data: bytes, offset: int) -> ElastalogError:
    """Points at the byte, in the text with every byte that is no UTF-8 replaced."""
    start = len(data[:offset].decode("utf-8"))
    source = Source(path, data.decode("utf-8", errors="replace"))
    return ElastalogError(
        (
            Diagnostic(
                "E0231",
                f"the program is not UTF-8: byte 0x{data[offset]:02x} at offset {offset}",
                (Label(Span(start, start + 1), "no character in UTF-8"),),
                help="save the file in UTF-8, for example with `iconv -f latin1 -t utf-8`",
                source=source,
            ),
        )
    )
