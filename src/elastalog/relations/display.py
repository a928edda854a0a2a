"""How answers are shown in notebooks: small tables of HTML."""

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
