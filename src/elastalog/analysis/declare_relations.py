"""Pass: the declared relations, with their attributes, qualifiers and directives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from elastalog.analysis.declare_types import BASE_TYPES, report_unknown_type
from elastalog.analysis.directives import read_directives
from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.program import Attribute, Base, Directive, Relation
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import Pragma, RelationDeclaration, TypeDeclaration

HINTS: Final = frozenset(("btree", "btree_delete", "brie", "no_inline"))
DIRECTIVES: Final = frozenset(("input", "output", "printsize"))
_SIDES: Final = {
    **dict.fromkeys(("btree", "btree_delete", "brie", "eqrel"), "representation"),
    **dict.fromkeys(("inline", "no_inline"), "inline"),
    **dict.fromkeys(("magic", "no_magic"), "magic"),
}
"""What a qualifier decides; those of one thing exclude each other."""


IGNORE_EXTRA_FIELDS = ("extra-fields", "ignore")
PRAGMAS = frozenset({("arithmetic", "wrap"), ("arithmetic", "check"), IGNORE_EXTRA_FIELDS, ("extra-fields", "refuse")})
"""The pragmas that mean something: whether integers wrap, or leaving their type is an error."""
LISTS = frozenset({"magic-transform", "magic-transform-exclude"})
"""Pragmas whose value is `*` or a list of relations: of which only what is asked for is derived, or all."""


def declare_relations(draft: Draft) -> Outcome:
    """Resolve the `.decl` declarations and the directives and pragmas about them."""
    findings = Findings(draft.tree.source)
    declarations: dict[str, RelationDeclaration] = {}
    attributes: dict[str, tuple[Attribute, ...]] = {}
    pragmas: dict[str, str] = {}
    noted: set[Span] = set()  # several names in one declaration share their qualifiers
    for item in draft.tree.items:
        if type(item) is RelationDeclaration:
            findings.instance = item.instance
            if item.name in declarations:
                first = declarations[item.name].name_span
                findings.declared_twice("E0201", f"relation {quoted(item.name)}", item.name_span, first)
                continue
            if item.name in draft.types and item.name not in BASE_TYPES:
                _report_clash(item, draft, findings)
            declarations[item.name] = item
            attributes[item.name] = _attributes(item, draft, findings)
            if item.qualifiers:
                _check_qualifiers(item, noted, findings.error if draft.is_strict else findings.warning)
                _note_hints(item, noted, findings)
                _check_equivalence(item, findings)
        elif type(item) is Pragma:
            findings.instance = None
            pragmas[item.name] = item.value
            if (item.name, item.value) not in PRAGMAS and item.name not in LISTS:
                findings.note("E0219", f"pragma {quoted(item.name)} has no effect", primary(item.span, "ignored"))
    directives = read_directives(draft, declarations, IGNORE_EXTRA_FIELDS in pragmas.items(), findings)
    relations = {
        name: Relation(
            name,
            attributes[name],
            (*_deprecated_directives(item), *directives.get(name, ())),
            tuple([text for text, _ in item.qualifiers]),
            item.name_span,
            _choices(item, findings) if item.choices else (),
        )
        for name, item in declarations.items()
    }
    outcome = replace(
        draft, declarations=declarations, relations=MappingProxyType(relations), pragmas=MappingProxyType(pragmas)
    )
    return outcome, findings.diagnostics


def _report_clash(item: RelationDeclaration, draft: Draft, findings: Findings) -> None:
    types = [t for t in draft.tree.items if type(t) is TypeDeclaration and t.name == item.name]
    report = findings.error if draft.is_strict else findings.warning
    report(
        "E0249",
        f"{quoted(item.name)} is the name of a type and of a relation",
        primary(item.name_span, "a relation here"),
        *(secondary(declared.name_span, "a type here") for declared in types[:1]),
        advice="rename one of them",
    )


def _check_qualifiers(item: RelationDeclaration, noted: set[Span], report: Callable[..., None]) -> None:
    """No qualifier twice, and none that contradicts another."""
    first: dict[str, tuple[str, Span]] = {}
    for text, span in item.qualifiers:
        previous = first.setdefault(_SIDES.get(text, text), (text, span))
        if previous[1] != span and span not in noted:
            noted.add(span)
            is_again = previous[0] == text
            report(
                "E0250",
                f"qualifier {quoted(text)} is given twice"
                if is_again
                else f"qualifiers {quoted(previous[0])} and {quoted(text)} contradict each other",
                primary(span, "again here" if is_again else "not both"),
                secondary(previous[1], "first here"),
                advice="remove one of them",
            )


def _attributes(item: RelationDeclaration, draft: Draft, findings: Findings) -> tuple[Attribute, ...]:
    seen: dict[str, Span] = {}
    attributes = []
    types = draft.types
    for attribute in item.attributes:
        if attribute.name in seen:
            findings.error(
                "E0210",
                f"relation {quoted(item.name)} has two attributes called {quoted(attribute.name)}",
                primary(attribute.name_span, "again here"),
                secondary(seen[attribute.name], "first here"),
                advice="rename one of them",
            )
        else:
            seen[attribute.name] = attribute.name_span
        meaning = types.get(attribute.type_name)
        if meaning is None:
            report_unknown_type(attribute.type_name, attribute.type_span, list(types), findings)
        structures = draft.structures if meaning is not None and meaning.structure is not None else None
        base = meaning.base if meaning else Base.NUMBER
        if attribute.improves in ("min", "max") and base is Base.RECORD:
            findings.error(
                "E0264",
                f"values of type {quoted(attribute.type_name)} have no order",
                primary(attribute.type_span, f"there is no {'least' if attribute.improves == 'min' else 'greatest'}"),
                advice=f"declare how they improve: `.lattice {attribute.type_name}<> {{ Lub -> @lub(_, _) }}`",
            )
        attributes.append(Attribute(attribute.name, attribute.type_name, base, structures, attribute.improves))
    return tuple(attributes)


def _check_equivalence(item: RelationDeclaration, findings: Findings) -> None:
    """An equivalence holds between two values of one type."""
    span = next((span for word, span in item.qualifiers if word == "eqrel"), None)
    types = [attribute.type_name for attribute in item.attributes]
    if span is not None and (len(types) != 2 or types[0] != types[1]):
        findings.error(
            "E0246",
            f"equivalence {quoted(item.name)} is not between two values of one type",
            primary(span, "needs two attributes of one type"),
            secondary(item.name_span, f"declared with {', '.join(types) or 'no attributes'}"),
            advice="declare two attributes of one type, or remove `eqrel`",
        )


def _choices(item: RelationDeclaration, findings: Findings) -> tuple[tuple[int, ...], ...]:
    """The columns of the keys of a choice domain."""
    columns = {attribute.name: column for column, attribute in enumerate(item.attributes)}
    for key in item.choices:
        for name, span in key:
            if name not in columns:
                findings.error(
                    "E0245",
                    f"relation {quoted(item.name)} has no attribute {quoted(name)}",
                    primary(span, "not an attribute"),
                    advice=findings.did_you_mean(name, columns) or f"its attributes are {', '.join(columns)}",
                )
    return tuple([tuple([columns[name] for name, _ in key if name in columns]) for key in item.choices])


def _note_hints(item: RelationDeclaration, noted: set[Span], findings: Findings) -> None:
    for text, span in item.qualifiers:
        if text in HINTS and span not in noted:
            noted.add(span)
            findings.note(
                "E0220",
                f"qualifier {quoted(text)} is a hint and has no effect",
                primary(span, "ignored"),
                note="relations are stored and rules are optimised without hints",
            )


def _deprecated_directives(item: RelationDeclaration) -> list[Directive]:
    return [Directive(text, MappingProxyType({}), span) for text, span in item.qualifiers if text in DIRECTIVES]
