"""HTML for values, facts and findings. Everything that comes from a program or from facts is escaped here."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Rule, Value
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.display import show_character

SHORT = 120
"""Characters of a value that are shown in a table or a list."""
LONG = 4_000
"""Characters that are shown where there is room."""


def html(text: str, most: int = LONG) -> str:
    """A text of a program or of facts: escaped, characters that cannot be seen or reorder a line made visible, and cut
    if it is long."""
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
    """A value as the language writes it. A long text is cut before it is written."""
    if isinstance(value, str) and len(value) > most:
        cut = f'<span class="wb-cut">… {len(value):,} characters</span>'
        return html(show_value(value[:most])[:-1], 8 * most) + cut
    return html(show_value(value), 8 * most)


def fact_html(relation: str, values: Sequence[Value], most: int = SHORT) -> str:
    """A fact as the language writes it."""
    return f"{html(relation)}({', '.join(value_html(value, most) for value in values)})"


def rule_html(rule: Rule) -> str:
    """A rule: its text, and where it stands."""
    where = f'<a href="/program?line={rule.line}">line {rule.line}</a>' if rule.line else ""
    return f"<code>{html(rule.text, 400)}</code> {where}"


def tag(text: str, kind: str = "") -> str:
    """A word in a pill."""
    return f'<span class="wb-tag {kind}">{html(text)}</span>'


def signed(came: int, went: int) -> str:
    """How many facts came and went."""
    parts = [
        f'<span class="plus">+{came:,}</span>' if came else "",
        f'<span class="minus">−{went:,}</span>' if went else "",
    ]
    return " ".join(part for part in parts if part) or '<span class="wb-cut">±0</span>'


def prose(text: str) -> str:
    """A sentence of ours, in which backticks stand around code."""
    parts = html(text).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def empty(heading: str, text: str) -> str:
    """What stands where there is nothing: why, and what to do."""
    return f'<div class="wb-empty"><b>{html(heading)}</b><p>{prose(text)}</p></div>'


def fault_html(found: Diagnostic) -> str:
    """A diagnostic: code, message, help."""
    place = ""
    if found.source is not None and found.labels:
        line, column = found.source.locate(found.labels[0].span.start)
        place = f'<a href="/program?line={line}">line {line}, column {column}</a> · '
    more = "".join(f"<p>{prose(note)}</p>" for note in found.notes)
    advice = f"<p>{prose(found.help)}</p>" if found.help else ""
    kind = "" if found.severity == "error" else found.severity
    head = f'{place}<b>{prose(found.message)}</b> <span class="wb-note">{found.code}</span>'
    return f'<div class="wb-fault {kind}" role="alert">{head}{more}{advice}</div>'


def faults_html(found: Iterable[Diagnostic], most: int = 20) -> str:
    """Diagnostics, the first of many."""
    listed = list(found)
    more = f'<p class="wb-note">… and {len(listed) - most} more</p>' if len(listed) > most else ""
    return "".join(map(fault_html, listed[:most])) + more


def seconds_html(seconds: float) -> str:
    """A duration, in the unit that suits it."""
    if seconds >= 10:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.1f} ms"


def bytes_html(size: int) -> str:
    """A size in memory, in the unit that suits it."""
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
    """A cell with a bar of a length from 0 to 1; there is no room for it on a phone."""
    return cell(f'<div class="wb-bar-cell"><b style="width:{100 * share:.0f}%"></b></div>', "wb-hide-phone")


def table(head: str, rows: Iterable[str]) -> str:
    """A table that scrolls where it is too wide."""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wb-scroll"><table class="wb-table">{body}</table></div>'


def sign(is_plus: bool) -> str:
    """The sign of what came or went."""
    return f'<span class="wb-sign {"plus" if is_plus else "minus"}">{"+" if is_plus else "−"}</span>'


def told(text: str, kind: str = "note") -> str:
    """Something to know: `note`, `warning`, or, when something went well, `fine`."""
    look = "wb-fine" if kind == "fine" else f"wb-fault {kind}"
    return f'<div class="{look}">{text}</div>'
