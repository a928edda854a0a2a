"""A program that has been read and checked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from elastalog.analysis.check import check, flatten, place
from elastalog.analysis.program import EQUIVALENCE, CheckedProgram
from elastalog.diagnostics.arguments import require_one_of, require_path, require_text, stays_here
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error, finding
from elastalog.diagnostics.messages import counted
from elastalog.diagnostics.nearest import path_near
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass, function
from elastalog.program.preprocessing import Preprocessing, preprocessing
from elastalog.program.preprocessing import preprocess as preprocess_source
from elastalog.syntax.parser import parse, without_collection
from elastalog.syntax.printer import print_item, print_tree
from elastalog.syntax.tree import Atom, Call, Clause, Item, RelationDeclaration, Tree, Variable, Wildcard, nodes_of

T = TypeVar("T")

_compile = function("elastalog.session.opening:compile_program")

LARGEST_FILE: Final = 256 * 2**20
"""The size in bytes beyond which a program file is refused."""


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """A program without errors.

    >>> program = Program.parse(".decl edge(x: number, y: number)\\nedge(1, 2).")
    >>> "edge" in program.checked.relations
    True

    `tree`: what was written, components written out for their instances, inline relations replaced by their rules, and
    with the rules that `eqrel` stands for. `checked`: what it means. `warnings`: what is worth a look (warnings and
    notes, sorted by place). `is_flattened`: there were components or inline relations, so that the items of the tree
    are not those of the text. Nothing in it changes, so that threads may share one; and sessions of one program object
    share what has been made of it: its logical form and plans."""

    tree: Tree
    checked: CheckedProgram
    warnings: tuple[Diagnostic, ...] = ()
    is_flattened: bool = False
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        relations, rules = len(self.checked.relations), len(self.checked.rules)
        return f"<Program {self.tree.source.name}: {counted(relations, 'relation')}, {counted(rules, 'rule')}>"

    def compile(self) -> Program:
        """Makes ready what all sessions of the program in this process share: its logical form, plans, and the machine
        code that evaluates and updates them. Returns the program. Without it the first session does that; with it,
        processes that are forked from this one find it done."""
        _compile(self)
        return self

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value made once for the program and shared by all its sessions."""
        found: T | None = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    __reduce__ = stays_here("a program", "hand on its path, or its text, and read it there")

    @classmethod
    def parse(
        cls,
        text: str,
        name: str = "<text>",
        *,
        include: Iterable[str | os.PathLike[str]] = (),
        macros: Mapping[str, object] | None = None,
        preprocess: bool = True,
        arithmetic: str | None = None,
    ) -> Program:
        """Read and check a program text. Raises ElastalogError with every diagnostic when it has errors; `name` stands
        for the file name in them, and files that the text includes are looked for beside it, then in the folders
        `include`. `macros` are defined beforehand; without `preprocess` lines that begin with `#` are errors.
        `arithmetic`: `wrap` takes integers modulo 2^64, as `.pragma "arithmetic" "wrap"` in the text does; `check`, the
        default, makes a result outside its type an error."""
        require_text("a program text is a text", text, "give the text itself; `Program.load` takes a path")
        return cls._read(Source(name, text), preprocessing(include, macros, preprocess), arithmetic)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        include: Iterable[str | os.PathLike[str]] = (),
        macros: Mapping[str, object] | None = None,
        preprocess: bool = True,
        arithmetic: str | None = None,
    ) -> Program:
        """Read and check a program file in UTF-8; the options are those of `parse`. Raises ElastalogError when it, or a
        file that it includes, cannot be read or has errors."""
        require_path("a program file is named by its path", path, "give a text or a `Path`")
        name = os.fspath(path)
        return cls._read(Source(name, read_program_text(name)), preprocessing(include, macros, preprocess), arithmetic)

    @classmethod
    def _read(cls, source: Source, options: Preprocessing, arithmetic: str | None) -> Program:
        return with_arithmetic(cls.of(preprocess_source(source, options, read_program_text)), arithmetic)

    @classmethod
    def reopen(cls, text: str, name: str) -> Program:
        """Checks the text of a program that was valid before: from a store, or with rules changed. It needs no
        preprocessing. What earlier versions accepted (such as values in columns of a subtype, E0307) gives a warning at
        most."""
        return cls.of(Source(name, text), is_strict=False)

    @classmethod
    def of(cls, source: Source, *, is_strict: bool = True) -> Program:
        """Check a program whose text needs no preprocessing any more."""
        _, program, found = examine(source, is_strict=is_strict)
        if program is None:
            raise ElastalogError(found)
        return program

    @property
    def flat_text(self) -> str:
        """The program without components: as it was written, or printed where it had some."""
        if not self.is_flattened:
            return self.tree.source.text
        items = tuple([item for item in self.tree.items if not is_closure(item, self.tree)])
        return print_tree(replace(self.tree, items=items))


def examine(source: Source, *, is_strict: bool = True) -> tuple[Tree, Program | None, tuple[Diagnostic, ...]]:
    """The tree of a text as it was written, without what cannot be read; the program, unless there are errors; and all
    findings in the order of their places. The text must have been preprocessed."""
    checked = None
    with without_collection():
        written, found = parse(source)
        if not is_strict:
            # Errors that earlier versions did not know are warnings.
            found = tuple([replace(f, severity="warning") if f.code in ("E0122", "E0129") else f for f in found])
        flat = written
        if not _has_errors(found):
            flat, more = flatten(written, is_strict=is_strict)
            found = (*found, *more)
        tree = with_closures(flat)
        if not _has_errors(found):
            checked, more = check(tree, is_strict=is_strict)
            found = (*found, *more, *_divisions_by_zero(written))
    found = tuple(sorted(found, key=place))
    if checked is None:
        return written, None, found
    return written, Program(tree, checked, found, is_flattened=flat is not written), found


def _divisions_by_zero(tree: Tree) -> Iterator[Diagnostic]:
    """Warnings about terms that have no value, so that facts and rules with them derive nothing."""
    if _BY_ZERO.search(tree.source.text):  # most programs have none, and need not be gone through
        for call in nodes_of(Call, tree.items):
            if call.functor in ("/", "%") and getattr(call.arguments[-1], "value", None) == 0:
                yield finding("E0325", call.arguments[-1].span, severity="warning", source=tree.source)


_BY_ZERO = re.compile(r"[/%]\s*0")


def _has_errors(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def as_program(
    program: str | os.PathLike[str] | Program,
    include: Iterable[str | os.PathLike[str]] = (),
    macros: Mapping[str, object] | None = None,
) -> Program:
    """A program given as an object, as its text, or as the path of its file; the options are those of
    `Program.parse`."""
    if isinstance(program, Program):
        return program
    require_path("a program is a path, a text, or a `Program`", program, "give one of these")
    if isinstance(program, str) and any(mark in program for mark in ("\n", ":-", ".decl ")):
        return Program.parse(program, include=include, macros=macros)
    return Program.load(program, include=include, macros=macros)


def _advice(path: str) -> str:
    """Advice on a path that does not exist, and may have been meant as a program text."""
    if path.rstrip().endswith(".") or "(" in path:
        return "a text of one line is read by `Program.parse(text)`"
    return path_near(path) or "check the path, relative to the current folder"


def with_arithmetic(program: Program, arithmetic: str | None) -> Program:
    """The program with another arithmetic, which becomes part of its text so that a store keeps it; with None, the
    program itself."""
    require_one_of("value of `arithmetic`", arithmetic or "check", ("check", "wrap"))
    if arithmetic is None or program.checked.pragmas.get("arithmetic", "check") == arithmetic:
        return program
    return with_pragmas(program, {"arithmetic": arithmetic})


def with_pragmas(program: Program, pragmas: Mapping[str, str]) -> Program:
    """The program with further pragmas, which override its own."""
    source = program.tree.source
    lines = [f".pragma {json.dumps(name)} {json.dumps(value)}\n" for name, value in pragmas.items()]
    return Program.of(replace(source, text=f"{source.text.rstrip()}\n{''.join(lines)}")) if lines else program


def declarations_in(text: str) -> tuple[str, ...]:
    """The types, relations, directives and pragmas that a program text declares, printed in order."""
    tree, _ = flatten(parse(Source("<text>", text))[0])
    return tuple(print_item(item) for item in tree.items if not isinstance(item, Clause))


def read_program_text(path: str) -> str:
    """The text of a program file. Raises ElastalogError when it cannot be read, is too large, or is not UTF-8."""
    try:
        if not path:
            raise _unreadable(
                "<text>", "neither a path nor a text was given", "give the path of a program, or its text"
            )
        if (Path(path) / "CURRENT").is_file():
            advice = (
                f'in Python, `elastalog.open(store="{path}")`; `show`, `query`, `explain`, `debug` and `apply` take it'
            )
            raise _unreadable(path, "it is a store", advice)
        if Path(path).is_dir():
            raise _unreadable(path, "it is a folder", "give the program file inside it")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file", _advice(path)) from None
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
    return error("E0230", location=path, reason=reason, advice=advice)


def _not_utf8(path: str, data: bytes, offset: int) -> ElastalogError:
    """An error that points at the invalid byte, in the text with all such bytes replaced."""
    start = len(data[:offset].decode("utf-8"))
    source = Source(path, data.decode("utf-8", errors="replace"))
    likely = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
    return error("E0231", Span(start, start + 1), source=source, byte=data[offset], offset=offset, likely=likely)


# --- equivalence relations: `eqrel` stands for the three rules that close one ----------------------------------------


def with_closures(tree: Tree) -> Tree:
    """The tree with the rules that `eqrel` stands for after each declaration that has it; their place is that of the
    word. A relation without exactly two attributes is left for the analysis to report."""
    if not any(isinstance(item, RelationDeclaration) and item.qualifier(EQUIVALENCE) for item in tree.items):
        return tree
    return replace(tree, items=tuple(_closed(tree.items)))


def is_closure(item: Item, tree: Tree) -> bool:
    """Whether an item is one of the rules that an `eqrel` stands for."""
    return isinstance(item, Clause) and tree.source.text[slice(*item.span)] == EQUIVALENCE


def _closed(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        yield item
        span = item.qualifier(EQUIVALENCE) if isinstance(item, RelationDeclaration) else None
        if span is not None and isinstance(item, RelationDeclaration) and len(item.attributes) == 2:
            x, y, z, any_value = (*(Variable(name, span) for name in ("x", "y", "z")), Wildcard(span))
            for head, *body in (((x, x), (x, any_value)), ((y, x), (x, y)), ((x, z), (x, y), (y, z))):
                first, *rest = (Atom(item.name, terms, span, span) for terms in (head, *body))
                yield Clause((first,), tuple(rest), None, span, item.instance)
