"""Pass: the declared relations, with their attributes and qualifiers, and the directives `.input`, `.output`,
`.printsize` and `.limitsize` with their parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from elastalog.analysis.declare_types import BASE_TYPES, report_twice, report_unknown_type
from elastalog.analysis.draft import Draft
from elastalog.analysis.findings import Findings
from elastalog.analysis.program import EQUIVALENCE, Attribute, Base, Directive, Relation
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import REPRESENTATIONS
from elastalog.syntax.tree import Pragma, RelationDeclaration, TypeDeclaration

HINTS: Final = frozenset(("btree", "btree_delete", "brie", "no_inline"))
_SIDES: Final = {
    **dict.fromkeys(REPRESENTATIONS, "representation"),
    **dict.fromkeys(("inline", "no_inline"), "inline"),
    **dict.fromkeys(("magic", "no_magic"), "magic"),
}
"""What a qualifier decides; those of one thing exclude each other."""


IGNORE_EXTRA_FIELDS = ("extra-fields", "ignore")
PRAGMAS = frozenset({("arithmetic", "wrap"), ("arithmetic", "check"), IGNORE_EXTRA_FIELDS, ("extra-fields", "refuse")})
"""The pragmas that mean something: whether integers wrap, or leaving their type is an error."""
LISTS = frozenset({"magic-transform", "magic-transform-exclude"})
"""Pragmas whose value is `*` or a list of relations: of which only what is asked for is derived, or all."""


def declare_relations(draft: Draft, findings: Findings) -> Draft:
    """Resolve the `.decl` declarations and the directives and pragmas about them."""
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
                types = [t for t in draft.tree.items if type(t) is TypeDeclaration and t.name == item.name]
                report = findings.error if draft.is_strict else findings.warning
                report("E0249", item.name_span, *(declared.name_span for declared in types[:1]), name=item.name)
            declarations[item.name] = item
            attributes[item.name] = _attributes(item, draft, findings)
            if item.qualifiers:
                _check_qualifiers(item, noted, draft.is_strict, findings)
                _check_equivalence(item, findings)
        elif type(item) is Pragma:
            findings.instance = None
            pragmas[item.name] = item.value
            if (item.name, item.value) not in PRAGMAS and item.name not in LISTS:
                findings.note("E0219", item.span, name=item.name)
    directives = read_directives(draft, declarations, IGNORE_EXTRA_FIELDS in pragmas.items(), findings)
    relations = {
        name: Relation(
            name,
            attributes[name],
            tuple(directives.get(name, ())),
            tuple([text for text, _ in item.qualifiers]),
            item.name_span,
            _choices(item, findings) if item.choices else (),
        )
        for name, item in declarations.items()
    }
    return replace(
        draft, declarations=declarations, relations=MappingProxyType(relations), pragmas=MappingProxyType(pragmas)
    )


def _check_qualifiers(item: RelationDeclaration, noted: set[Span], is_strict: bool, findings: Findings) -> None:
    """Reports qualifiers that are repeated or contradict each other, and notes those that are only hints."""
    first: dict[str, tuple[str, Span]] = {}
    for text, span in item.qualifiers:
        previous = first.setdefault(_SIDES.get(text, text), (text, span))
        if previous[1] != span and span not in noted:
            noted.add(span)
            key = "E0250.twice" if previous[0] == text else "E0250.contradiction"
            report = findings.error if is_strict else findings.warning
            report(key, span, previous[1], text=text, first=previous[0])
        elif text in HINTS and span not in noted:
            noted.add(span)
            findings.note("E0220", span, text=text)


def _attributes(item: RelationDeclaration, draft: Draft, findings: Findings) -> tuple[Attribute, ...]:
    attributes = []
    types = draft.types
    report_twice(item.attributes, f"relation {quoted(item.name)} has", "attributes", findings)
    for attribute in item.attributes:
        meaning = types.get(attribute.type_name)
        if meaning is None:
            report_unknown_type(attribute.type_name, attribute.type_span, list(types), findings)
        structures = draft.structures if meaning is not None and meaning.structure is not None else None
        base = meaning.base if meaning else Base.NUMBER
        if attribute.improves in ("min", "max") and base is Base.RECORD:
            findings.error(
                "E0264", attribute.type_span, type=attribute.type_name,
                best="least" if attribute.improves == "min" else "greatest",
            )  # fmt: skip
        attributes.append(Attribute(attribute.name, attribute.type_name, base, structures, attribute.improves))
    return tuple(attributes)


def _check_equivalence(item: RelationDeclaration, findings: Findings) -> None:
    """An equivalence holds between two values of one type."""
    span = item.qualifier(EQUIVALENCE)
    types = [attribute.type_name for attribute in item.attributes]
    if span is not None and (len(types) != 2 or types[0] != types[1]):
        findings.error("E0246", span, item.name_span, name=item.name, types=", ".join(types) or "no attributes")


def _choices(item: RelationDeclaration, findings: Findings) -> tuple[tuple[int, ...], ...]:
    """The columns of the keys of a choice domain."""
    columns = {attribute.name: column for column, attribute in enumerate(item.attributes)}
    for key in item.choices:
        for name, span in key:
            if name not in columns:
                findings.error(
                    "E0245", span, relation=item.name, name=name,
                    near=findings.nearest(name, columns), attributes=", ".join(columns),
                )  # fmt: skip
    return tuple([tuple([columns[name] for name, _ in key if name in columns]) for key in item.choices])


# --- directives ------------------------------------------------------------------------------------------------------

_OF_TEXTS: Final = ("IO", "filename", "delimiter", "headers", "rfc4180", "compress")
PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "input": (*_OF_TEXTS, "columns", "dbname", "name", "format", "base"),
        "output": (*_OF_TEXTS, "dbname", "name", "format", "prefixes"),
        "printsize": ("IO",),
        "limitsize": ("n",),
    }
)
"""The parameters that each directive takes."""

EVERY: Final = "*"
"""In the place of a relation: every relation without a directive of the kind; for `.input`, also without rules."""

_PLACES: Final = {
    "input": ("file", "stdin", "json", "jsonfile", "sqlite", "rdf", "updates"),
    "output": ("file", "stdout", "stdoutprintsize", "json", "jsonfile", "sqlite", "rdf"),
    "printsize": ("stdout",),
}
_INSTEAD_OF_IO: Final = {
    **{
        form: f'name the file accordingly, `filename="….{form}"`, and leave `IO` out: the ending says what is in it'
        for form in ("parquet", "jsonl", "ndjson")
    },
    "csv": 'leave `IO` out: files are text anyway; add `delimiter=","` where commas separate the values',
}
_FORMS: Final = ("list", "object", "ntriples", "nquads", "turtle", "trig", "rdfxml", "jsonld")
_SWITCHES: Final = frozenset(("headers", "rfc4180", "compress"))


def read_directives(
    draft: Draft,
    declarations: Mapping[str, tree.RelationDeclaration],
    ignores_extra_fields: bool,
    findings: Findings,
) -> dict[str, list[Directive]]:
    """The valid directives of each declared relation, in the order written; others are reported. With
    `ignores_extra_fields`, text files may have more columns than their relations. A reopened program may come from
    another user, so its files are confined to the given folders."""
    program = draft.tree

    def directive(item: tree.Directive, name: str, parameters: dict[str, str]) -> Directive:
        if ignores_extra_fields and item.kind == "input" and parameters.get("IO", "file") in ("file", "stdin"):
            places = map(str, range(len(declarations[name].attributes)))
            parameters = {"columns": ":".join(places), **parameters}
        return Directive(item.kind, MappingProxyType(parameters), item.span, not draft.is_strict)

    rules = [item for item in program.items if type(item) is tree.Clause]
    used = {atom.relation for rule in rules for atom in (*rule.heads, *rule.body) if type(atom) is tree.Atom}
    found: dict[str, list[Directive]] = {}
    every: list[tuple[tree.Directive, dict[str, str]]] = []
    seen: dict[tuple[str, str], list[tuple[Span, Mapping[str, str]]]] = {}
    for item in program.items:
        if type(item) is not tree.Directive:
            continue
        findings.instance = item.instance
        if item.relation == EVERY:
            every.append((item, _parameters(item, findings)))
            continue
        if item.relation not in declarations:
            if item.relation not in used:  # otherwise that is told where the types of its columns can be seen
                near = findings.nearest(item.relation, declarations)
                findings.error("E0204", item.relation_span, name=item.relation, near=near)
            continue
        parameters = _parameters(item, findings)
        before = seen.setdefault((item.relation, item.kind), [])
        same = next((span for span, given in before if given == parameters), None)
        # Several inputs or outputs of one relation, of different places, are useful; the same one twice counts once.
        if same is not None or (before and not _is_another(item.kind, parameters)):
            is_told_off = item.kind == "printsize" or item.span == item.relation_span  # a qualifier; by Soufflé, too
            (findings.error if same is None or (draft.is_strict and is_told_off) else findings.warning)(
                "E0213", item.relation_span, same or before[0][0], kind=item.kind, relation=item.relation
            )
            continue
        before.append((item.relation_span, parameters))
        found.setdefault(item.relation, []).append(directive(item, item.relation, parameters))
    derived = {head.relation for rule in rules for head in rule.heads}
    for item, parameters in every:
        for name in declarations:
            if (name, item.kind) not in seen and not (item.kind == "input" and name in derived):
                found.setdefault(name, []).append(directive(item, name, parameters))
    return found


def _is_another(kind: str, parameters: Mapping[str, str]) -> bool:
    """Whether a directive is useful beside an earlier one with other parameters: an input that names its own place, or
    any output."""
    return kind == "output" or (
        kind == "input" and not parameters.keys().isdisjoint(("IO", "filename", "dbname", "name"))
    )


def _parameters(item: tree.Directive, findings: Findings) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value, span in item.parameters:
        if name in values:
            findings.warning("E0215.twice", span, name=name)
        if name not in PARAMETERS[item.kind]:
            allowed = PARAMETERS[item.kind]
            findings.warning(
                "E0214", _of_name(item, name, span, findings.source), kind=item.kind, name=name,
                near=findings.nearest(name, allowed) or next((one for one in allowed if one.startswith(name)), None),
                allowed=", ".join(allowed),
            )  # fmt: skip
        else:
            values[name] = value
            _check_value(item.kind, name, value, span, findings)
    if item.kind == "limitsize" and "n" not in values:
        findings.error("E0217", item.relation_span, relation=item.relation)
    return values


def _of_name(item: tree.Directive, name: str, value: Span, source: Source) -> Span:
    """The place of a parameter's name, which precedes its value."""
    start = source.text.rfind(name, item.span.start, value.start)
    return value if start < 0 else Span(start, start + len(name))


def _check_value(kind: str, name: str, value: str, span: Span, findings: Findings) -> None:
    expected = _expected(kind, name, value)
    if expected is not None:
        findings.error(
            "E0215", span, name=name, kind=kind, value=quoted(value) if value else "empty", expected=expected,
            instead=_INSTEAD_OF_IO.get(value.lower()) if name == "IO" and kind != "printsize" else None,
        )  # fmt: skip
    elif name in ("filename", "dbname") and (not value or "\0" in value or PurePosixPath(value).name in ("", "..")):
        findings.error("E0216", span, value=value, folder="facts (`-F`)" if kind == "input" else "outputs (`-D`)")


def _expected(kind: str, name: str, value: str) -> str | None:
    """What the value should have been, or None if it is valid."""
    if name == "IO" and value not in _PLACES[kind]:
        return " or ".join(f"`{place}`" for place in _PLACES[kind])
    if name in _SWITCHES and value not in ("true", "false"):
        return "`true` or `false`"
    if name == "format" and value not in _FORMS:
        return " or ".join(f"`{form}`" for form in _FORMS)
    if name == "columns" and not all(column.isascii() and column.isdigit() for column in value.split(":")):
        return "numbers of columns, from 0, as in `0:2:1`"
    if name == "n" and not (value.isascii() and value.isdigit() and 0 < int(value[:20]) < 2**63):
        return "a whole number above 0"
    if name == "delimiter" and value in ("", "\n", "\r", '"'):
        return "at least one character other than a quote or a line end"
    return None
