"""Macros: their definitions, their expansion, and conditions over them. pcpp does the work; its errors come back as
text."""

from __future__ import annotations

import re
from collections.abc import Collection
from string import ascii_letters
from typing import Any, Final

from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.diagnostics.quota import look
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass

COMMENT_OR_STRING: Final = r'//[^\n]*+|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]++|\\.)*+"?'
_NUMBER: Final = r"\.?[0-9](?:[eE][+-]|[\w.])*+"
_SKIPPED: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BRACKET: Final = re.compile(rf"{COMMENT_OR_STRING}|(?P<bracket>[()])", re.DOTALL)
_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BUILT_IN: Final = frozenset(("__LINE__", "__COUNTER__"))
_CONTINUED: Final = re.compile(r"\\\r?\n")
_NAMES: Final = re.compile(r"[A-Za-z_]\w*")
_ENDING: Final = re.compile(r"[A-Za-z_]\w*\s*\Z")

MOST_TOKENS: Final = 1_000_000
MOST_CHARACTERS: Final = 1 << 26
"""What all macros of a program may become: definitions that use each other twice double at every step."""


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a macro in a text, and what it expands to. `fault` says why it cannot be expanded."""

    span: Span
    macro: str
    text: str
    fault: str | None


class MacroError(Exception):
    """A definition or condition is wrong; the text says how."""


class Macros:
    """The macros defined so far. `places` has the place, as `file:line`, of those that a file defines."""

    def __init__(self, is_on: bool = True) -> None:
        """Without a preprocessor (`is_on`), only `__FILE__` and `__LINE__` are defined."""
        from pcpp.preprocessor import Preprocessor  # takes a while to load, and most programs do without

        self._faults: list[str] = []
        self._pcpp: Any = Preprocessor()
        self._pcpp.on_error = lambda file, line, message: self._faults.append(message)
        if not is_on:
            self._pcpp.macros.clear()
        self._expand_once = self._pcpp.expand_macros
        self._pcpp.expand_macros = self._expand_within
        self._tokens = self._characters = 0
        self.places: dict[str, str] = {}
        # What uses became under the present definitions, unless one of them differs from use to use.
        self._expansions: dict[str, str] = {}
        self._found: re.Pattern[str] | None = None  # by this they are looked for
        self._varies = False

    def define(self, text: str, place: str | None) -> None:
        """`NAME`, `NAME text` or `NAME(a, b) text`. Raises MacroError."""
        text = without_comments(text).strip()
        name = _NAMES.match(text)
        if name is None:
            raise MacroError("a macro needs a name" if not text else f"`{text.split()[0][:40]}` cannot name a macro")
        if name[0] == "defined":
            raise MacroError("`defined` cannot name a macro")
        self._tried(lambda: self._pcpp.define(text))
        self._forget()
        self._varies = self._varies or any(word in text for word in _BUILT_IN)
        self.places.pop(name[0], None)
        if place is not None:
            self.places[name[0]] = place

    def undefine(self, name: str) -> None:
        self._pcpp.macros.pop(name, None)
        self._forget()

    def _forget(self) -> None:
        """Drops what depends on the macros that are defined."""
        self._expansions.clear()
        self._found = None

    def is_defined(self, name: str) -> bool:
        return name in self._pcpp.macros or name in _BUILT_IN

    def holds(self, condition: str) -> bool:
        """Whether the condition of `#if` holds. Raises MacroError."""
        condition = without_comments(condition).strip()
        if not condition:
            raise MacroError("the condition is missing")
        value, _ = self._tried(lambda: self._pcpp.evalexpr(self._pcpp.tokenize(condition)))
        return bool(value)

    def expanded(self, text: str) -> str:
        """A single line with its macros replaced, as for `#include NAME`. Raises MacroError."""
        return str(self._tried(lambda: self._expand(text, 0)))

    def uses(self, text: str, start: int, end: int, line_of_start: int) -> list[Use]:
        """The uses of macros in a stretch of text, in order, except those in comments and strings."""
        known = self._pcpp.macros.keys() | _BUILT_IN
        # Most stretches use no macro, and this is quick.
        if not any(text.find(name, start, end) >= 0 for name in known):
            return []
        if self._found is None:
            self._found = _first_of(known)
        found: list[Use] = []
        position = counted = start
        line = line_of_start
        while (word := self._found.match(text, position, end)) is not None and word["name"] is not None:
            position = word.end()
            line += text.count("\n", counted, word.start("name"))
            counted = word.start("name")
            use = self._use(text, word, end, line)
            if use is not None:
                found.append(use)
                position = use.span.end
        return found

    def _use(self, text: str, word: re.Match[str], end: int, line: int) -> Use | None:
        start, stop = word.span("name")
        last = name = word["name"]
        while True:
            if self._takes_arguments(last):
                closed = _closed(text, stop, end)
                if closed is None:
                    if stop == word.end():
                        return None  # without its arguments it is an ordinary name
                    break
                stop = closed
            try:
                expanded = self._expanded_use(text[start:stop], line)
            except MacroError as fault:
                return Use(Span(start, stop), name, "", str(fault))
            # A macro may end in the name of another whose arguments follow in the text.
            ending = _ENDING.search(expanded)
            last = ending[0].strip() if ending else ""
            if not self._takes_arguments(last) or _closed(text, stop, end) is None:
                break
        return Use(Span(start, stop), name, expanded, None)

    def _expanded_use(self, use: str, line: int) -> str:
        known = self._expansions.get(use)
        if known is None:
            known = self._tried(lambda: self._expand(use, line))
            if not self._varies and use not in _BUILT_IN:
                self._expansions[use] = known
        self._characters += len(known)
        if self._characters > MOST_CHARACTERS:
            raise MacroError(f"the macros of the program become more than {MOST_CHARACTERS:,} characters")
        return known

    def _takes_arguments(self, name: str) -> bool:
        macro = self._pcpp.macros.get(name)
        return macro is not None and macro.arglist is not None

    def _expand(self, text: str, line: int) -> str:
        self._pcpp.lexer.lineno = line
        tokens = self._pcpp.tokenize(without_comments(_CONTINUED.sub("", text)).replace("\n", " "))
        return "".join(str(token.value) for token in self._pcpp.expand_macros(tokens))

    def _expand_within(self, tokens: list[Any], *arguments: Any) -> list[Any]:
        """Expands tokens by pcpp, which calls this for its own work, too."""
        look()
        found: list[Any] = self._expand_once(tokens, *arguments)
        self._tokens += len(found)
        if self._tokens > MOST_TOKENS:
            raise MacroError(f"the macros of the program become more than {MOST_TOKENS:,} tokens")
        return found

    def _tried(self, work: Any) -> Any:
        """The result of a call to pcpp, which may fail in any way on input that it does not expect."""
        self._faults.clear()
        try:
            result = work()
        except LimitReached:
            raise
        except Exception as fault:
            raise MacroError(str(fault) or type(fault).__name__) from None
        if self._faults:
            message = self._faults[0].partition(" (passed to evaluator")[0]
            raise MacroError(message[:1].lower() + message[1:] if message[1:2].islower() else message)
        return result


def _first_of(names: Collection[str]) -> re.Pattern[str]:
    """A pattern that skips everything up to the first of these names, by whole words: looking at every character would
    take five times as long, and matching letters outside ASCII first twice as long. It uses an atomic group, as in
    `preprocess`."""
    either = "|".join(map(re.escape, names))
    starts = "".join(sorted(set(ascii_letters).difference(name[0] for name in names)))
    plain = rf'[^A-Za-z0-9_"/.\x80-\U0010ffff]++|[{starts}][A-Za-z0-9_]*+'
    other = rf'(?!(?:{either})(?!\w))[^\W\d]\w*+|{COMMENT_OR_STRING}|{_NUMBER}|\d\w*+|[^\w"]'
    return re.compile(rf"(?>(?:{plain}|{other})*)(?:(?P<name>{either})(?!\w))?", re.DOTALL)


def without_comments(text: str) -> str:
    """A text in which each comment is replaced by a blank; strings stay."""
    return _COMMENT.sub(lambda found: found[1] or " ", text) if "/" in text else text


def _closed(text: str, position: int, end: int) -> int | None:
    """The place after the `)` of the arguments that follow a name; None if there are none."""
    skipped = _SKIPPED.match(text, position, end)
    position = skipped.end() if skipped else position
    if text[position : position + 1] != "(" or position >= end:
        return None
    depth = 0
    for found in _BRACKET.finditer(text, position, end):
        if found["bracket"]:
            depth += 1 if found["bracket"] == "(" else -1
            if depth == 0:
                return found.end()
    return None
