"""How answers are shown: small tables of HTML for notebooks, the first lines for `repr`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elastalog.diagnostics.display import show_text


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a caption; all values are escaped, and what cannot be seen in them is made visible."""
    from html import escape

    head = "".join(f"<th>{escape(show_text(name))}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(show_text(str(value)))}</td>" for value in row) + "</tr>" for row in rows
    )
    title = escape(show_text(caption))
    return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


MOST_LINES = 10
"""Lines that the `repr` of an answer has."""


def cut(text: str) -> str:
    """The first lines of a text, for the `repr` of what `print` shows whole."""
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join((*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES:,} more lines; `print` shows them"))
