"""Trees without their places, to compare what was written in different layouts."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tree import Tree

NOWHERE = Span(0, 0)


def strip_spans(node: Any) -> Any:
    """The same node with every span set to NOWHERE."""
    if isinstance(node, Span):
        return NOWHERE
    if isinstance(node, Tree):
        return tuple(strip_spans(item) for item in node.items)
    if isinstance(node, Source):
        return None
    if isinstance(node, tuple):
        return tuple(strip_spans(part) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{field.name: strip_spans(getattr(node, field.name)) for field in fields(node)})
    return node
