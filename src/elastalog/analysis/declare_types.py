"""Two passes: which base type each type name resolves to, and which functors users implement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from elastalog.analysis.draft import Draft, TypeMeaning
from elastalog.analysis.findings import Findings, secondary
from elastalog.analysis.graphs import Uses, components, reached, shortest_path
from elastalog.analysis.program import Base, Part, StructuredType, UserFunctor
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import Attribute, BranchDeclaration, FunctorDeclaration, Tree, TypeDeclaration

BASE_TYPES: dict[str, TypeMeaning] = {
    base.value: TypeMeaning(base.value, base, ()) for base in Base if base is not Base.RECORD
}


_DATES = ("date", "datetime", "timestamp")
_TRUTHS = ("bool", "boolean")
_ELSEWHERE = {
    **dict.fromkeys(("int", "integer", "int32", "int64", "long", "bigint", *_TRUTHS), "number"),
    **dict.fromkeys(("string", "str", "text", "varchar", "char", *_DATES), "symbol"),
    **dict.fromkeys(("double", "real", "decimal", "float64"), "float"),
    **dict.fromkeys(("uint", "uint64", "nat", "natural"), "unsigned"),
}
"""What other languages call the base types."""


def declare_types(draft: Draft, findings: Findings) -> Draft:
    """Resolve the `.type` declarations: each to one base type, without cycles and without mixing bases in a union."""
    declared = _collect(draft, findings)
    known = _with_known_parents(declared, findings)
    _check_branches(known, findings)
    meanings = dict(BASE_TYPES)
    inside: dict[str, dict[str, tuple[Part, ...]]] = {n: {} for n, declaration in known.items() if declaration.branches}
    for name in _parents_first(known, findings):
        if name in inside:
            structure = StructuredType(name, MappingProxyType(inside[name]))
            meanings[name] = TypeMeaning(name, Base.RECORD, (), structure=structure)
        else:
            _resolve(known[name], meanings, findings)
    for name in declared:  # a type at fault stays declared, so that one error does not become many
        meanings.setdefault(name, TypeMeaning(name, Base.NUMBER, ()))
    for name, parts in inside.items():  # types may be made of each other
        parts.update(_parts_by_constructor(known[name], meanings))
    structures = {name: meaning.structure for name, meaning in meanings.items() if meaning.structure is not None}
    return replace(draft, types=meanings, structures=MappingProxyType(structures))


def _collect(draft: Draft, findings: Findings) -> dict[str, TypeDeclaration]:
    declared: dict[str, TypeDeclaration] = {}
    for item in draft.tree.items:
        if type(item) is not TypeDeclaration:
            continue
        findings.instance = item.instance
        if item.name in BASE_TYPES:
            findings.error("E0202", item.name_span, name=item.name)
        elif item.name in declared:
            first = declared[item.name].name_span
            findings.declared_twice("E0202", f"type {quoted(item.name)}", item.name_span, first)
        else:
            declared[item.name] = item
    return declared


def _with_known_parents(declared: dict[str, TypeDeclaration], findings: Findings) -> dict[str, TypeDeclaration]:
    known = {}
    for name, declaration in declared.items():
        findings.instance = declaration.instance
        named = (
            *declaration.parents,
            *((field.type_name, field.type_span) for branch in declaration.branches for field in branch.fields),
        )
        unknown = [(p, span) for p, span in named if p not in declared and p not in BASE_TYPES]
        for parent, span in unknown:
            report_unknown_type(parent, span, [*declared, *BASE_TYPES], findings)
        if not unknown:
            known[name] = declaration
    return known


def types_below(program: Tree, tops: Iterable[str]) -> set[str]:
    """Some types, together with all types declared as subtypes, aliases or unions of them."""
    below: dict[str, list[str]] = {}
    for item in program.items:
        if type(item) is TypeDeclaration:
            for name, _ in item.parents:
                below.setdefault(name, []).append(item.name)
    return reached(tops, lambda name: below.get(name, ()))


def report_unknown_type(name: str, span: Span, candidates: list[str], findings: Findings) -> None:
    """E0203, with the nearest name."""
    near, known = findings.nearest(name, candidates), name.lower()
    day = '"2026-01-31"' if known in _DATES else None
    truths = "truth values" if known in _TRUTHS else None
    findings.error("E0203", span, name=name, near=near, here=_ELSEWHERE.get(known), day=day, truths=truths)


def _parents_first(known: dict[str, TypeDeclaration], findings: Findings) -> Iterator[str]:
    """The type names in an order in which parents precede children. Types that are defined by each other are
    reported."""
    uses: Uses = {
        name: {parent: declared.span for parent, _ in declared.parents if parent in known}
        for name, declared in known.items()
    }
    for component in components(uses):
        first = min(component, key=list(known).index) if len(component) > 1 else component[0]
        after = next((used for used in uses[first] if used in component), None)
        if after is not None:
            way = shortest_path(after, first, uses)
            findings.instance = known[first].instance
            findings.error(
                "E0208", known[first].span,
                *(
                    secondary(known[this].span, f"{quoted(this)} is defined by {quoted(by)} here")
                    for this, by in pairwise(way[:21])
                ),
                name=first, by=after,
            )  # fmt: skip
        yield from component


def _parts_by_constructor(
    declaration: TypeDeclaration, meanings: Mapping[str, TypeMeaning]
) -> Iterator[tuple[str, tuple[Part, ...]]]:
    for branch in declaration.branches:
        fields = [(field, meanings[field.type_name]) for field in branch.fields]
        parts = (Part(f.name, f.type_name, of.base, getattr(of.structure, "name", None)) for f, of in fields)
        yield f"${branch.name}" if branch.name else "[]", tuple(parts)


def _check_branches(known: dict[str, TypeDeclaration], findings: Findings) -> None:
    """Reports branches that share a name, and fields of a branch that do."""
    seen: dict[str, BranchDeclaration] = {}
    for declaration in known.values():
        for branch in declaration.branches:
            report_twice(branch.fields, "there are", "fields", findings)
            if branch.name and branch.name in seen:
                findings.error("E0240", branch.name_span, seen[branch.name].name_span, name=branch.name)
            seen.setdefault(branch.name, branch)


def report_twice(attributes: Iterable[Attribute], owner: str, kind: str, findings: Findings) -> None:
    """Reports attributes or fields that have the name of an earlier one (E0210)."""
    seen: dict[str, Span] = {}
    for attribute in attributes:
        first = seen.setdefault(attribute.name, attribute.name_span)
        if first is not attribute.name_span:
            findings.error("E0210", attribute.name_span, first, owner=owner, kind=kind, name=attribute.name)


def _resolve(declaration: TypeDeclaration, meanings: dict[str, TypeMeaning], findings: Findings) -> None:
    findings.instance = declaration.instance
    parents = [(meanings[name], span) for name, span in declaration.parents if name in meanings]
    if len(parents) < len(declaration.parents) or not parents:
        return  # a parent is at fault and already reported
    (first, first_span), *others = parents
    for other, span in others:
        if other.kind is not first.kind:
            findings.error("E0209", span, first_span, name=declaration.name, first=first, other=other)
            return
    name = declaration.name
    match declaration.kind:
        case "subtype":
            meanings[name] = TypeMeaning(name, first.base, (first.name,), structure=first.structure)
        case "alias":
            meanings[name] = TypeMeaning(name, first.base, (), first.same_as or first.name, first.structure)
        case _:
            every = next((m for m, _ in parents if (m.same_as or m.name) in BASE_TYPES), None)
            if every is not None:  # the union of a base type and parts of it is the base type
                meanings[name] = TypeMeaning(name, first.base, (), every.same_as or every.name)
                return
            members = tuple([member.same_as or member.name for member, _ in parents])
            meanings[name] = TypeMeaning(name, first.base, (), structure=first.structure, members=members)
            for member in members:  # a member is below its union
                meanings[member] = replace(meanings[member], above=(*meanings[member].above, name))


# --- functors that users implement -----------------------------------------------------------------------------------


def declare_functors(draft: Draft, findings: Findings) -> Draft:
    """Resolves the `.functor` declarations. Each is declared once, and only stateful functors may take or return
    records."""
    declared: dict[str, UserFunctor] = {}
    for item in draft.tree.items:
        if type(item) is not FunctorDeclaration:
            continue
        if item.name in declared:
            findings.declared_twice("E0243", f"functor `@{item.name}`", item.name_span, declared[item.name].span)
            continue
        stateful = item.is_stateful
        parameters = tuple([_base(p.type_name, p.type_span, stateful, draft, findings) for p in item.parameters])
        result = _base(*item.result, stateful, draft, findings)
        declared[item.name] = UserFunctor(
            item.name,
            parameters,
            result,
            stateful,
            item.name_span,
            tuple([p.type_name for p in item.parameters]),
            item.result[0],
        )
    return replace(draft, functors=MappingProxyType(declared))


def _base(name: str, span: Span, is_stateful: bool, draft: Draft, findings: Findings) -> Base:
    meaning = draft.types.get(name)
    if meaning is None:
        report_unknown_type(name, span, list(draft.types), findings)
        return Base.NUMBER
    if meaning.base is Base.RECORD and not is_stateful:
        findings.error("E0244", span, type=name)
        return Base.NUMBER
    return meaning.base
