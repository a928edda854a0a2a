"""Pass: the declared relations, with their attributes, qualifiers and directives."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from elastalog.analysis.declare_types import report_unknown_type
from elastalog.analysis.directives import read_directives
from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.program import Attribute, Base, Directive, Relation
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import Pragma, RelationDeclaration

HINTS: Final = frozenset(
    ("btree", "btree_delete", "brie", "magic", "no_magic", "inline", "no_inline", "overridable", "override")
)
DIRECTIVES: Final = frozenset(("input", "output", "printsize"))


def declare_relations(draft: Draft) -> Outcome:
    """Resolve the `.decl` declarations and the directives and pragmas about them."""
    findings = Findings(draft.tree.source)
    declarations: dict[str, RelationDeclaration] = {}
    attributes: dict[str, tuple[Attribute, ...]] = {}
    pragmas: dict[str, str] = {}
    noted: set[Span] = set()  # several names in one declaration share their qualifiers
    for item in draft.tree.items:
        if type(item) is RelationDeclaration:
            if item.name in declarations:
                _report_twice(item, declarations[item.name], findings)
                continue
            declarations[item.name] = item
            attributes[item.name] = _attributes(item, draft, findings)
            _note_hints(item, noted, findings)
        elif type(item) is Pragma:
            pragmas[item.name] = item.value
            findings.note("E0219", f"pragma {quoted(item.name)} has no effect", primary(item.span, "ignored"))
    directives = read_directives(draft.tree, declarations, findings)
    relations = {
        name: Relation(
            name,
            attributes[name],
            (*_deprecated_directives(item), *directives.get(name, ())),
            tuple(text for text, _ in item.qualifiers),
            item.name_span,
        )
        for name, item in declarations.items()
    }
    outcome = replace(
        draft, declarations=declarations, relations=MappingProxyType(relations), pragmas=MappingProxyType(pragmas)
    )
    return outcome, findings.diagnostics


def _report_twice(again: RelationDeclaration, first: RelationDeclaration, findings: Findings) -> None:
    findings.error(
        "E0201",
        f"relation {quoted(again.name)} is declared twice",
        primary(again.name_span, "declared again here"),
        secondary(first.name_span, "first declared here"),
        advice="remove one of the declarations, or rename it",
    )


def _attributes(item: RelationDeclaration, draft: Draft, findings: Findings) -> tuple[Attribute, ...]:
    seen: dict[str, Span] = {}
    attributes = []
    for attribute in item.attributes:
        if attribute.name in seen:
            findings.error(
                "E0210",
                f"relation {quoted(item.name)} has two attributes called {quoted(attribute.name)}",
                primary(attribute.name_span, "again here"),
                secondary(seen[attribute.name], "first here"),
                advice="rename one of them",
            )
        seen.setdefault(attribute.name, attribute.name_span)
        meaning = draft.types.get(attribute.type_name)
        if meaning is None:
            report_unknown_type(attribute.type_name, attribute.type_span, list(draft.types), findings)
        structures = draft.structures if meaning is not None and meaning.structure is not None else None
        base = meaning.base if meaning else Base.NUMBER
        attributes.append(Attribute(attribute.name, attribute.type_name, base, structures))
    return tuple(attributes)


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
