"""What can be wrong with components and their instances."""

from __future__ import annotations

from collections.abc import Collection

from elastalog.analysis.findings import Findings, counted, primary, quoted, secondary
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import Component, ComponentType, Init, Instance, Override, RelationDeclaration


def unknown(wanted: ComponentType, known: Collection[str], findings: Findings) -> None:
    """E0211."""
    findings.error(
        "E0211",
        f"unknown component {quoted(wanted.name)}",
        primary(wanted.name_span, "not declared"),
        advice=findings.did_you_mean(wanted.name, known) or f"declare it: `.comp {wanted.name[:60]} {{ … }}`",
    )


def wrong_count(wanted: ComponentType, component: Component, findings: Findings) -> None:
    """E0212."""
    expected, given = len(component.parameters), len(wanted.arguments)
    names = ", ".join(name for name, _ in component.parameters)
    findings.error(
        "E0212",
        f"component {quoted(component.name)} takes {counted(expected, 'parameter')}, not {given}",
        primary(wanted.span, f"{given} here"),
        secondary(component.name_span, "declared here"),
        advice=f"write `{component.name[:60]}<{names}>`" if names else f"write `{component.name[:60]}`",
    )


def declared_twice(again: Component, first: Component, findings: Findings) -> None:
    """E0225."""
    findings.declared_twice("E0225", f"component {quoted(again.name)}", again.name_span, first.name_span)


def instance_twice(again: Init, first: Init, findings: Findings) -> None:
    """E0225."""
    findings.error(
        "E0225",
        f"instance {quoted(again.name)} is made twice",
        primary(again.name_span, "again here"),
        secondary(first.name_span, "first here"),
        advice="give one of them another name",
    )


def instantiates_itself(init: Init, component: Component, outer: Instance | None, findings: Findings) -> None:
    """E0222."""
    way = [] if outer is None else _way(outer)
    findings.error(
        "E0222",
        f"component {quoted(component.name)} would hold an instance of itself",
        primary(init.span, "without end"),
        secondary(component.name_span, "the component"),
        note=f"reached through {', '.join(way)}" if way else None,
        advice="move what is shared into a component of its own, and make instances of that",
    )


def inherits_from_itself(component: Component, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222",
        f"component {quoted(component.name)} inherits from itself",
        primary(component.name_span, "through what follows its `:`"),
        advice="break the circle",
    )


def too_deep(what: str, most: int, place: Span, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222", f"{what} more than {most} deep", primary(place, "too deep"), advice="make the chain shorter"
    )


def too_large(most: str, place: Span, findings: Findings) -> None:
    """E0222."""
    findings.error(
        "E0222",
        f"instances make the program larger than {most}",
        primary(place, "reached here"),
        advice="make fewer instances",
    )


def override_outside(item: Override, findings: Findings) -> None:
    """E0224."""
    findings.error(
        "E0224",
        "`.override` stands outside of a component",
        primary(item.span, "overrides nothing"),
        advice="write it into the component that inherits the relation",
    )


def cannot_override(item: Override, declared: RelationDeclaration | None, findings: Findings) -> None:
    """E0224."""
    if declared is None:
        findings.error(
            "E0224",
            f"there is no inherited relation {quoted(item.relation)} to override",
            primary(item.relation_span, "not inherited"),
            advice="name a relation that a component behind the `:` declares",
        )
        return
    findings.error(
        "E0224",
        f"relation {quoted(item.relation)} cannot be overridden",
        primary(item.relation_span, "overridden here"),
        secondary(declared.name_span, "declared without `overridable`"),
        advice=f"write `overridable` behind the declaration of {quoted(item.relation)}",
    )


def _way(instance: Instance) -> list[str]:
    names: list[str] = []
    current: Instance | None = instance
    while current is not None and len(names) < 8:
        names.append(f"`.init {current.name.rpartition('.')[2]} = {current.component}`")
        current = current.outer
    return names[::-1]
