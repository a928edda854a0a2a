"""A syntax tree as indented text: one line a node, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tree import Tree


def outline(tree: Tree) -> Iterator[str]:
    """The nodes from the top, in the order written. Works with a stack, since trees may be deep."""
    pending: list[tuple[object, int, str]] = [(item, 0, "") for item in reversed(tree.items)]
    while pending:
        node, depth, role = pending.pop()
        if not is_dataclass(node):  # a body: the literals of an alternative
            yield f"{'  ' * depth}{role}"
            if isinstance(node, tuple):
                pending.extend([(child, depth + 1, "") for child in reversed(node)])
            continue
        scalars, children = _parts(node)
        place = _place(getattr(node, "span", None), tree.source)
        label = f"{role}: " if role else ""
        yield f"{'  ' * depth}{label}{type(node).__name__}{scalars}{place}"
        pending.extend([(child, depth + 1, role) for role, child in reversed(children)])


def _parts(node: object) -> tuple[str, list[tuple[str, object]]]:
    """The fields that fit on the line of the node, and those that are nodes themselves."""
    scalars = []
    children: list[tuple[str, object]] = []
    for field in fields(node):  # type: ignore[arg-type]  # the caller has seen that it is one
        value = getattr(node, field.name)
        if isinstance(value, Span) or value is None or value == ():
            continue
        if is_dataclass(value):
            children.append((field.name, value))
        elif isinstance(value, tuple) and all(is_dataclass(part) for part in value):
            role = {"arguments": "", "heads": "head"}.get(field.name, field.name.removesuffix("s"))
            children.extend([(role, part) for part in value])
        elif field.name == "alternatives":
            children.extend([("alternative", part) for part in value])
        else:
            scalars.append(f" {field.name}={_scalar(value)}")
    return "".join(scalars), children


def _scalar(value: object) -> str:
    """A plain value; spans inside tuples are left out."""
    if isinstance(value, tuple):
        return f"({', '.join(_scalar(part) for part in value if not isinstance(part, Span))})"
    return value if isinstance(value, str) and value.isidentifier() else repr(value)


def _place(span: Span | None, source: Source) -> str:
    if span is None:
        return ""
    if source.pieces:
        return f" @{source.place(span.start)}"
    line, column = source.locate(span.start)
    return f" @{line}:{column}"
