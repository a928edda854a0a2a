"""Colours of rendered diagnostics."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

_RESET = "\x1b[0m"
SEVERITIES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
GUTTER = "\x1b[1;34m"
SECONDARY = "\x1b[1;34m"
BOLD = "\x1b[1m"

_TOKEN_STYLES = (
    ("Token.Comment", "\x1b[90m"),
    ("Token.Keyword", "\x1b[35m"),
    ("Token.Literal.String", "\x1b[32m"),
    ("Token.Literal.Number", "\x1b[36m"),
    ("Token.Name.Function", "\x1b[33m"),
    ("Token.Name.Builtin", "\x1b[35m"),
)


class Palette(Protocol):
    """How a part of the output is painted."""

    def paint(self, text: str, style: str) -> str:
        """The text with the style around it."""

    def styles_of_line(self, line: str) -> list[str]:
        """A style for each character of a source line; empty for none."""


class Plain:
    """No colours."""

    def paint(self, text: str, style: str) -> str:
        return text

    def styles_of_line(self, line: str) -> list[str]:
        return [""] * len(line)


class Ansi:
    """Colours for terminals; source lines by the lexer that Pygments knows under the name `elastalog`."""

    def paint(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if text and style else text

    def styles_of_line(self, line: str) -> list[str]:
        lexer = find_lexer()
        styles: list[str] = []
        if lexer is not None:
            for token, text in lexer.get_tokens(line):
                name = str(token)
                style = next((style for prefix, style in _TOKEN_STYLES if name.startswith(prefix)), "")
                styles.extend([style] * len(text))
        return (styles + [""] * len(line))[: len(line)]


@cache
def find_lexer() -> Any | None:
    """The lexer registered with Pygments, by name since it belongs to a higher floor; None when there is none."""
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError:
        return None
    try:
        return get_lexer_by_name("elastalog", stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
