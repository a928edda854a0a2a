"""HTML for values, facts and findings, and the addresses of links.

Everything from programs or facts is escaped here. The address determines what a page shows, so that it can be shared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Rule, Value
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.display import show_character
from elastalog.web.rules import GIVEN

SHORT = 120
"""Characters of a value in a table or a list."""
LONG = 4_000
"""Characters of a value where there is room."""


def html(text: str, most: int = LONG) -> str:
    """A text from a program or from facts: escaped, with invisible and reordering characters made visible, and
    shortened if it is long."""
    shown = text[:most]
    cut = f'<span class="wb-cut">… {len(text):,} characters</span>' if len(text) > most else ""
    if shown.isascii() and shown.isprintable():
        return escape(shown) + cut
    return "".join(map(_character, shown)) + cut


def _character(character: str) -> str:
    if character == "\t" or not _is_odd(character):
        return escape(character)
    return f'<span class="wb-odd">{escape(show_character(character))}</span>'


def _is_odd(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"


def value_html(value: Value, most: int = SHORT) -> str:
    """A value in the syntax of the language. A long text is shortened first."""
    if isinstance(value, str) and len(value) > most:
        cut = f'<span class="wb-cut">… {len(value):,} characters</span>'
        return html(show_value(value[:most])[:-1], 8 * most) + cut
    return html(show_value(value), 8 * most)


def fact_html(relation: str, values: Sequence[Value], most: int = SHORT) -> str:
    """A fact in the syntax of the language."""
    return f"{html(relation)}({', '.join(value_html(value, most) for value in values)})"


def rule_html(rule: Rule) -> str:
    """A rule: its text and its position."""
    line = line_of(rule)
    where = f'<a href="/program?line={line}">line {line}</a>' if line else ""
    return f"<code>{html(rule.text, 400)}</code> {where}"


def line_of(rule: Rule) -> int:
    """The line of a rule in the text that is shown, included files counted; 0 if unknown."""
    return 0 if rule.source is None else rule.source.locate(rule.span.start)[0]


def tag(text: str, kind: str = "") -> str:
    """A word in a pill."""
    return f'<span class="wb-tag {kind}">{html(text)}</span>'


def signed(came: int, went: int) -> str:
    """How many facts were inserted and deleted."""
    parts = [
        f'<span class="plus">+{came:,}</span>' if came else "",
        f'<span class="minus">−{went:,}</span>' if went else "",
    ]
    return " ".join(part for part in parts if part) or '<span class="wb-cut">±0</span>'


def prose(text: str) -> str:
    """One of our sentences; backticks mark code."""
    parts = html(text).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def empty(heading: str, text: str) -> str:
    """What is shown instead of nothing: why, and what to do."""
    return f'<div class="wb-empty"><b>{html(heading)}</b><p>{prose(text)}</p></div>'


def fault_html(found: Diagnostic) -> str:
    """A diagnostic: code, message, help."""
    place = ""
    if found.source is not None and found.labels:
        line, column = found.source.locate(found.labels[0].span.start)
        place = f"line {line}, column {column} · "
        if found.source.name == GIVEN or not found.source.name.startswith(
            "<"
        ):  # the others are no lines of the program
            place = f'<a href="/program?line={line}">line {line}, column {column}</a> · '
    more = "".join(f"<p>{prose(note)}</p>" for note in found.notes)
    advice = f"<p>{prose(_here(found.help))}</p>" if found.help else ""
    kind = "" if found.severity == "error" else found.severity
    head = f'{place}<b>{prose(found.message)}</b> <span class="wb-note">{found.code}</span>'
    return f'<div class="wb-fault {kind}" role="alert">{head}{more}{advice}</div>'


_HERE: Final = (
    (r"`suggest` \(on the command line `debug --unwanted`\)", "the page Repair"),
    (r"`(?:explain|why_not)`", "its own page"),
)


def _here(advice: str) -> str:
    """Advice of other interfaces, as it is called on these pages."""
    for theirs, ours in _HERE:
        advice = re.sub(theirs, ours, advice)
    return advice


def faults_html(found: Iterable[Diagnostic]) -> str:
    """Diagnostics; of many, the first ones."""
    return "".join(first_of([fault_html(one) for one in found], 20))


def first_of(items: Sequence[str], most: int, tag: str = "p") -> list[str]:
    """The first of many paragraphs or list items, and how many more there are."""
    more = [f'<{tag} class="wb-note">… {len(items) - most:,} more</{tag}>'] if len(items) > most else []
    return [*items[:most], *more]


def seconds_html(seconds: float) -> str:
    """A duration, in a suitable unit."""
    if seconds >= 10:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.1f} ms"


def bytes_html(size: int) -> str:
    """A size in memory, in a suitable unit."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"


# --- pieces of pages, made of what is HTML already -------------------------------------------------------------------


def link(address: object, content: str, look: str = "", more: str = "") -> str:
    """A link; `more` are further attributes."""
    return f'<a class="{look}" href="{escape(str(address))}" {more}>{content}</a>'


def cell(content: str, look: str = "") -> str:
    """A cell of a table."""
    return f'<td class="{look}">{content}</td>'


def bar_cell(share: float) -> str:
    """A cell with a bar of length 0 to 1, hidden on narrow screens."""
    return cell(f'<div class="wb-bar-cell"><b style="width:{100 * share:.0f}%"></b></div>', "wb-hide-phone")


def table(head: str, rows: Iterable[str]) -> str:
    """A table that scrolls if it is too wide."""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wb-scroll"><table class="wb-table">{body}</table></div>'


def sign(is_plus: bool) -> str:
    """The sign of an insertion or a deletion."""
    return f'<span class="wb-sign {"plus" if is_plus else "minus"}">{"+" if is_plus else "−"}</span>'


def told(text: str, kind: str = "note") -> str:
    """A message: a `note`, a `warning`, or `fine` for a success."""
    look = "wb-fine" if kind == "fine" else f"wb-fault {kind}"
    return f'<div class="{look}">{text}</div>'


@dataclass(frozen=True, slots=True)
class Address:
    """A path with parameters, in order. Parameters without a value are left out; one may occur several times."""

    path: str
    parameters: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(path: str, **parameters: object) -> Address:
        """From a path and its parameters: None, False and empty values are left out."""
        return Address(path).with_(**parameters)

    @staticmethod
    def read(written: str) -> Address:
        """From what a browser shows, without the host."""
        parts = urlsplit(written)
        return Address(parts.path or "/", tuple(parse_qsl(parts.query)))

    def __str__(self) -> str:
        return f"{self.path}?{urlencode(self.parameters)}" if self.parameters else self.path

    def with_(self, **changes: object) -> Address:
        """The same address with some parameters replaced or removed."""
        kept = tuple(pair for pair in self.parameters if pair[0] not in changes)
        return Address(self.path, kept + tuple(_pairs(changes)))

    def get(self, name: str, default: str = "") -> str:
        """The last value of a parameter."""
        return dict(self.parameters).get(name, default)

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a parameter, each once, in order."""
        return tuple(dict.fromkeys(value for key, value in self.parameters if key == name))

    def number(self, name: str, least: int = 0) -> int | None:
        """A parameter that is a whole number; None if it is not one, because an address may hold anything."""
        text = self.get(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least else None

    @property
    def epoch(self) -> int | None:
        """The epoch that is shown; None for the latest."""
        return self.number("epoch", 1)


def _pairs(changes: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    for name, value in changes.items():
        if isinstance(value, list | tuple):
            yield from ((name, str(one)) for one in value)
        elif value is not None and value is not False and value != "":
            yield name, "1" if value is True else str(value)


@cache
def icon(name: str) -> str:
    """An icon as SVG, in the colours of what is around it."""
    return Path(__file__).with_name("icons").joinpath(f"{name}.svg").read_text()
