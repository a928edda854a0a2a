"""The few pictures of the workbench, drawn with lines, so that no font has to be loaded for them."""

from __future__ import annotations

from typing import Final

_LINES: Final = {
    "facts": '<rect x="3" y="4" width="18" height="16" rx="2"/><path d="M3 9.5h18M3 15h18M9.5 9.5V20"/>',
    "program": '<path d="M8 6 3 12l5 6M16 6l5 6-5 6M13.5 4l-3 16"/>',
    "update": '<path d="M12 5v14M5 12h14"/>',
    "timeline": '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2.5"/>',
    "repair": (
        '<path d="M14.7 6.3a4 4 0 0 0 5 5L11 20a2.8 2.8 0 0 1-4-4l8.7-8.7ZM14.7 6.3 17 4a4 4 0 0 1 3 3l-2.3 2.3"/>'
    ),
    "engine": '<path d="M12 3 3 7.5 12 12l9-4.5L12 3ZM3 12l9 4.5 9-4.5M3 16.5 12 21l9-4.5"/>',
    "moon": '<path d="M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.500 10.500Z"/>',
    "keys": (
        '<rect x="3" y="6" width="18" height="12" rx="2"/><path d="M7 10h.01M10 10h.01M14 10h.01M17 10h.01M7 14h10"/>'
    ),
}

BRAND: Final = (
    '<svg viewBox="0 0 32 32" fill="none" aria-hidden="true">'
    '<path d="M16 5 5 25h22L16 5Z" stroke="var(--accent)" stroke-width="2.2" stroke-linejoin="round"/>'
    '<circle cx="16" cy="5" r="4" fill="var(--accent)"/><circle cx="5" cy="25" r="4" fill="var(--violet)"/>'
    '<circle cx="27" cy="25" r="4" fill="var(--plus)"/></svg>'
)
"""A fact that follows from two others."""


def icon(name: str) -> str:
    """A picture as SVG, in the colour of the text around it."""
    return (
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true">{_LINES[name]}</svg>'
    )
