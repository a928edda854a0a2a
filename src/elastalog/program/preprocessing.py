"""From the text of a program to the text it stands for. Every character of that knows where it was written.

Which lines count and which files they name is decided here; macros and conditions are pcpp's. Stretches without macros
are taken over as they are, so that a program pays only for what it uses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from elastalog.diagnostics.arguments import require_path, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding
from elastalog.diagnostics.source import Piece, Source, Span
from elastalog.late import dataclass
from elastalog.program.macros import COMMENT_OR_STRING, MacroError, Macros, without_comments

DEEPEST: Final = 100
"""How deep files may include each other."""
LARGEST: Final = 256 * 2**20
"""How many characters macros may make of a program."""

_LINE: Final = re.compile(
    r"^[ \t]*(?:\#[ \t]*(?P<word>[A-Za-z]+|[0-9]+|)(?P<rest>(?:/\*.*?\*/|[^\n\\]|\\\r?\n|\\)*)"
    r"|\.(?P<dot>include[ \t]*(?P<file>\"[^\"\n]*\")|once)(?![\w?(]))",
    re.DOTALL | re.MULTILINE,
)
"""A line to obey."""
_LIKE_ONE: Final = r"^[ \t]*(?:\#|\.include\b|\.once\b)"
_NEEDED: Final = re.compile(_LIKE_ONE, re.MULTILINE)
# What comments and strings hold only looks like one. Whole lines are passed over, since a look at every character takes
# five times as long. An atomic group: before Python 3.11.5 a possessive one goes on behind what a look ahead has seen.
_OTHERS: Final = re.compile(
    rf'(?>(?:(?!{_LIKE_ONE})(?>(?:[^\n"/]++|{COMMENT_OR_STRING}|/)*)(?:\n|\Z))*)', re.DOTALL | re.MULTILINE
)
_PLACES: Final = ("__FILE__", "__LINE__")
PREDEFINED: Final = "RAM_DOMAIN_SIZE"
"""A macro that Soufflé defines: how many bits a number has."""
_MARKS: Final = ("#", ".include", ".once")
"""Every text that needs preprocessing contains one of these: to look for them takes hardly any time."""
_NAMED: Final = re.compile(r'"([^"\n]+)"|<([^>\n]+)>')

Reader = Callable[[str], str]
"""Gives the text of a file. Raises ElastalogError when it cannot be read."""


def preprocess(source: Source, options: Preprocessing, read: Reader) -> Source:
    """The text that a program stands for after preprocessing. Raises ElastalogError with every diagnostic if lines have
    errors."""
    is_needed = any(mark in source.text for mark in _MARKS) and _NEEDED.search(source.text) is not None
    is_used = any(name in source.text for name in _PLACES) or (options.is_on and PREDEFINED in source.text)
    if not is_needed and not (options.is_on and options.macros) and not is_used:
        return source
    run = _Run(options, read)
    run.file(source, (), source.name)
    if run.errors:
        raise ElastalogError(run.errors)
    return run.expansion.source(source.name)


@dataclass(slots=True)
class _Condition:
    """An open `#if`. `is_taken`: one of its branches was taken, so that no other will be."""

    word: str
    span: Span
    was_active: bool
    is_taken: bool
    has_else: bool = False


class _Run:
    """One program. Macros, and the set of files read only once, are shared by all its files."""

    def __init__(self, options: Preprocessing, read: Reader) -> None:
        self.options = options
        self.read = read
        self.macros = Macros(options.is_on)
        self.expansion = Expansion()
        self.errors: list[Diagnostic] = []
        self.once: set[Path] = set()
        self.depth = 0
        self.made = 0
        for name, text in ((PREDEFINED, "64"), *options.macros) if options.is_on else ():
            try:
                self.macros.define(f"{name} {text}", None)
            except MacroError as fault:
                self.errors.append(finding("E0126.given", name=name, reason=fault))

    def file(self, source: Source, notes: tuple[str, ...], written: str) -> None:
        """Preprocesses a file. `written`: its name in the `#include`, so that `__FILE__` does not depend on where the
        file is."""
        self.macros.define(f'__FILE__ "{written}"', None)
        _File(self, source, notes, written, Path(source.name), source.text).obey()


@dataclass(slots=True, eq=False)
class _File:
    """One file being read, from `path`. After a `#line`, `source` is the rest of the file under the name given there,
    which begins in the text at `shift`."""

    run: _Run
    source: Source
    notes: tuple[str, ...]
    written: str
    path: Path
    text: str
    shift: int = 0
    conditions: list[_Condition] = field(default_factory=list)
    is_active: bool = True

    def obey(self) -> None:
        done = position = 0
        while (position := _end_of(_OTHERS, self.text, position)) < len(self.text):
            found = _LINE.match(self.text, position)
            if found is None or not (found["dot"] or self.run.options.is_on):
                position += 1  # within the line, so that it is passed over
                continue
            self.stretch(done, position)
            done = position = found.end()
            span = self.span(found)
            if found["dot"]:
                if self.is_active and found["file"] is None:
                    self.run.once.add(_identity(self.path))
                elif self.is_active:
                    self.include(found["file"][1:-1], True, span)
            else:
                rest = re.sub(r"\\\r?\n", "", found["rest"])
                self.hash_line(found["word"], rest, span, done)
                done = max(done, self.shift)
        self.stretch(done, len(self.text))
        for condition in self.conditions:
            self.fault("E0126.open", condition.span, word=condition.word)

    def span(self, found: re.Match[str]) -> Span:
        start = found.start() + len(found[0]) - len(found[0].lstrip())
        return Span(start - self.shift, max(found.end(), start + 1) - self.shift)

    def fault(self, key: str, span: Span, **values: Any) -> None:
        fault = finding(key, span, source=self.source, **values)
        if len(self.run.errors) < 50:
            self.run.errors.append(replace(fault, notes=(*fault.notes, *self.notes)))

    # --- text ------------------------------------------------------------------------------------------------------

    def stretch(self, start: int, end: int) -> None:
        """Handles text between lines for the preprocessor."""
        if not self.is_active or start >= end:
            return
        run, source, shift = self.run, self.source, self.shift
        done = start
        line, _ = source.locate(start - shift)
        for use in run.macros.uses(self.text, start, end, line):
            span = Span(use.span.start - shift, use.span.end - shift)
            place = run.macros.places.get(use.macro)
            if use.fault is not None:
                self.fault("E0128.use", span, macro=use.macro, reason=use.fault, place=place)
                continue
            run.made += len(use.text)
            if run.made > LARGEST:
                run.errors.append(finding("E0128", span, source=source, size=LARGEST // 2**20))
                raise ElastalogError(run.errors)
            run.expansion.copy(source, done - shift, span.start, self.notes)
            way = f"expanded from macro `{use.macro}`" + (f", defined at {place}" if place else "")
            run.expansion.replace(source, span, use.text, (way, *self.notes))
            done = use.span.end
        run.expansion.copy(source, done - shift, end - shift, self.notes)

    # --- lines that begin with `#` ---------------------------------------------------------------------------------

    def hash_line(self, word: str, rest: str, span: Span, end: int) -> None:
        match word:
            case "if" | "ifdef" | "ifndef":
                holds = self.is_active and self.condition(word, rest, span)
                self.conditions.append(_Condition(word, span, self.is_active, holds or not self.is_active))
                self.is_active = self.is_active and holds
            case "elif" | "elifdef" | "elifndef" | "else":
                self.branch(word, rest, span)
            case "endif":
                if not self.conditions:
                    self.fault("E0126", span, told="`#endif` closes no `#if`")
                else:
                    self.is_active = self.conditions.pop().was_active
            case _ if self.is_active:
                self.command(word, rest, span, end)

    def condition(self, word: str, rest: str, span: Span) -> bool:
        word = word.removeprefix("el")
        try:
            if word == "if":
                return self.run.macros.holds(rest)
            name = without_comments(rest).split()
            if not name:
                raise MacroError(f"`#{word}` needs the name of a macro")
            return self.run.macros.is_defined(name[0]) == (word == "ifdef")
        except MacroError as fault:
            self.fault("E0126", span, told=f"this condition cannot be judged: {fault}")
            return False

    def branch(self, word: str, rest: str, span: Span) -> None:
        if not self.conditions:
            self.fault("E0126", span, told=f"`#{word}` belongs to no `#if`")
            return
        current = self.conditions[-1]
        if current.has_else:
            self.fault("E0126", span, told=f"`#{word}` follows the `#else` of the same `#if`")
            return
        current.has_else = word == "else"
        may = current.was_active and not current.is_taken
        self.is_active = may and (word == "else" or self.condition(word, rest, span))
        current.is_taken = current.is_taken or self.is_active

    def command(self, word: str, rest: str, span: Span, end: int) -> None:
        try:
            match word:
                case "define":
                    line, _ = self.source.locate(span.start)
                    self.run.macros.define(rest, f"{self.source.name}:{line}")
                case "undef":
                    self.run.macros.undefine(without_comments(rest).strip())
                case "include":
                    self.include_line(rest, span)
                case "line":
                    self.line(rest, span, end)
                case "pragma":
                    if rest.split() == ["once"]:
                        self.run.once.add(_identity(self.path))
                case "error":
                    self.fault("E0126", span, told=f"`#error`: {rest.strip() or 'without a text'}")
                case "warning" | "ident" | "":
                    pass
                case _ if word.isdecimal():  # what compilers write for `#line`
                    self.line(word + rest, span, end)
                case _:
                    told = f"unknown preprocessor line `{self.source.text[span.start : span.end][:40].rstrip()}`"
                    self.fault("E0126", span, told=told, advice="comments start with `//`")
        except MacroError as fault:
            self.fault("E0126", span, told=f"`#{word}` is wrong: {fault}")

    def line(self, rest: str, span: Span, end: int) -> None:
        """`#line 12 "file"`: what follows counts as line 12 of that file."""
        words = re.fullmatch(r'\s*([0-9]{1,9})(?:\s+"([^"\n]*)")?[\s0-9]*', self.run.macros.expanded(rest))
        if words is None:
            raise MacroError('write a number and, if it changes, the file: `#line 12 "file"`')
        self.shift = min(end + 1, len(self.text))
        name = words[2] if words[2] is not None else self.source.name
        self.source = Source(name, self.text[self.shift :], first_line=int(words[1]))
        self.run.expansion.end_line(self.source, 0, self.notes)

    # --- including -------------------------------------------------------------------------------------------------

    def include_line(self, rest: str, span: Span) -> None:
        written = without_comments(rest).strip()
        named = _NAMED.fullmatch(written) or _NAMED.fullmatch(self.run.macros.expanded(written).strip())
        if named is None:
            raise MacroError('the file is written `"file"` or `<file>`')
        self.include(named[1] or named[2], named[1] is not None, span)

    def include(self, name: str, is_beside: bool, span: Span) -> None:
        run = self.run
        folders = [str(self.path.parent)] if is_beside else []
        folders += run.options.include
        found = next((path for folder in folders if _is_file(path := Path(folder) / name)), None)
        if found is None:
            places = ", ".join(f"`{folder}`" for folder in folders[:8])
            self.fault("E0125", span, name=name, places=places or None)
            return
        if _identity(found) in run.once:
            return
        if run.depth >= DEEPEST:
            run.errors.append(finding("E0127", span, source=self.source, depth=DEEPEST, name=name))
            raise ElastalogError(run.errors[-1:])
        try:
            text = run.read(str(found))
        except ElastalogError as error:
            reason = error.diagnostics[0].message.partition(": ")[2]
            self.fault("E0125.unreadable", span, name=name, reason=reason)
            return
        run.depth += 1
        line, _ = self.source.locate(span.start)
        included = Source(str(found), text)
        run.expansion.end_line(self.source, span.start, self.notes)
        run.file(included, (f"included from {self.source.name}:{line}", *self.notes), name)
        run.expansion.end_line(included, len(text), self.notes)
        run.macros.define(f'__FILE__ "{self.written}"', None)
        run.depth -= 1


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name no file can have
        return False


def _identity(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


class Expansion:
    """Collects stretches of text in order, with their origins."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def copy(self, source: Source, start: int, end: int, notes: tuple[str, ...]) -> None:
        """Appends a stretch of a file unchanged."""
        if start < end:
            self._add(source.text[start:end], Piece(self._length, source, Span(start, end), True, notes))

    def replace(self, source: Source, span: Span, text: str, notes: tuple[str, ...]) -> None:
        """Appends a text in place of what was written in a file."""
        if text:
            self._add(text, Piece(self._length, source, span, False, notes))

    def end_line(self, source: Source, offset: int, notes: tuple[str, ...]) -> None:
        """Appends a line break unless the text ends in one, since files need not."""
        if self._texts and not self._texts[-1].endswith("\n"):
            self.replace(source, Span(offset, offset), "\n", notes)

    def _add(self, text: str, piece: Piece) -> None:
        self._texts.append(text)
        self._pieces.append(piece)
        self._length += len(text)

    def source(self, name: str) -> Source:
        """The whole text, which knows where its parts were written."""
        return Source(name, "".join(self._texts), tuple(self._pieces))


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """`include`: folders searched for included files. `macros`: names with their texts, defined beforehand. `is_on`:
    whether lines that begin with `#` are obeyed; `.include` and `.once` always are."""

    include: tuple[str, ...] = ()
    macros: tuple[tuple[str, str], ...] = ()
    is_on: bool = True


def preprocessing(
    include: Iterable[str | os.PathLike[str]] = (), macros: Mapping[str, object] | None = None, is_on: bool = True
) -> Preprocessing:
    """The options from the arguments of a Python call. Raises ElastalogError if one is of the wrong kind."""
    if isinstance(include, str | os.PathLike):
        raise wrong_kind("`include` is a list of folders", include, "give a list, as in `include=[path]`")
    folders = list(include)
    for folder in folders:
        require_path("a folder to search is named by its path", folder, "give a text or a `Path`")
    if macros is not None and not isinstance(macros, Mapping):
        raise wrong_kind("`macros` maps names to texts", macros, 'give a mapping, such as `macros={"SIZE": 3}`')
    named = tuple((str(name), _text(value)) for name, value in (macros or {}).items())
    return Preprocessing(tuple(os.fspath(folder) for folder in folders), named, is_on)


def _text(value: object) -> str:
    """The text of a macro. True is 1, False is 0, and None is empty, as with `-M NAME`."""
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
