"""The `.input`, `.output`, `.printsize` and `.limitsize` directives and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from elastalog.analysis.draft import Draft
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.program import Directive
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax import tree

PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "input": (
            "IO",
            "filename",
            "delimiter",
            "headers",
            "rfc4180",
            "compress",
            "columns",
            "dbname",
            "name",
            "format",
            "base",
        ),
        "output": (
            "IO",
            "filename",
            "delimiter",
            "headers",
            "rfc4180",
            "compress",
            "dbname",
            "name",
            "format",
            "prefixes",
        ),
        "printsize": ("IO",),
        "limitsize": ("n",),
    }
)
"""The parameters that each directive takes."""

EVERY: Final = "*"
"""In the place of a relation: every one that has no directive of the kind; for `.input`, and no rules."""

_PLACES: Final = {
    "input": ("file", "stdin", "json", "jsonfile", "sqlite", "rdf"),
    "output": ("file", "stdout", "stdoutprintsize", "json", "jsonfile", "sqlite", "rdf"),
    "printsize": ("stdout",),
}
_FORMS: Final = ("list", "object", "ntriples", "nquads", "turtle", "trig", "rdfxml", "jsonld")
_SWITCHES: Final = frozenset(("headers", "rfc4180", "compress"))


def read_directives(
    draft: Draft,
    declarations: Mapping[str, tree.RelationDeclaration],
    ignores_extra_fields: bool,
    findings: Findings,
) -> dict[str, list[Directive]]:
    """The directives of each declared relation, in the order written, those at fault reported and left out.
    `ignores_extra_fields`: text files may have more columns than their relations. A program that is opened again may
    be that of somebody else: its files stay below the folders given."""
    program = draft.tree

    def directive(item: tree.Directive, name: str, parameters: dict[str, str]) -> Directive:
        if ignores_extra_fields and item.kind == "input" and parameters.get("IO", "file") in ("file", "stdin"):
            places = map(str, range(len(declarations[name].attributes)))
            parameters = {"columns": ":".join(places), **parameters}
        return Directive(item.kind, MappingProxyType(parameters), item.span, not draft.is_strict)

    found: dict[str, list[Directive]] = {}
    every: list[tuple[tree.Directive, dict[str, str]]] = []
    seen: dict[tuple[str, str], list[tuple[Span, Mapping[str, str]]]] = {}
    for relation in declarations.values():
        for text, span in relation.qualifiers:
            seen.setdefault((relation.name, text), [(span, {})])
    for item in program.items:
        if type(item) is not tree.Directive:
            continue
        findings.instance = item.instance
        if item.relation == EVERY:
            every.append((item, _parameters(item, findings)))
            continue
        if item.relation not in declarations:
            _report_unknown(item, declarations, findings)
            continue
        parameters = _parameters(item, findings)
        before = seen.setdefault((item.relation, item.kind), [])
        same = next((span for span, given in before if given == parameters), None)
        # Several inputs or outputs of one relation, of different places, are of use; the same once more counts once.
        if same is not None or (before and not _is_another(item.kind, parameters)):
            (findings.error if same is None else findings.warning)(
                "E0213",
                f"`.{item.kind}` of {quoted(item.relation)} is given twice",
                primary(item.relation_span, "again here"),
                secondary(same or before[0][0], "first here"),
                advice="remove one of them",
            )
            continue
        before.append((item.relation_span, parameters))
        found.setdefault(item.relation, []).append(directive(item, item.relation, parameters))
    derived = {head.relation for item in program.items if type(item) is tree.Clause for head in item.heads}
    for item, parameters in every:
        for name in declarations:
            if (name, item.kind) not in seen and not (item.kind == "input" and name in derived):
                found.setdefault(name, []).append(directive(item, name, parameters))
    return found


def _is_another(kind: str, parameters: Mapping[str, str]) -> bool:
    """Whether a directive is of use beside another with different parameters: an input that names its place, and
    every output."""
    return kind == "output" or (
        kind == "input" and not parameters.keys().isdisjoint(("IO", "filename", "dbname", "name"))
    )


def _report_unknown(
    item: tree.Directive, declarations: Mapping[str, tree.RelationDeclaration], findings: Findings
) -> None:
    findings.error(
        "E0204",
        f"unknown relation {quoted(item.relation)}",
        primary(item.relation_span, "not declared"),
        advice=findings.did_you_mean(item.relation, declarations)
        or f"declare it: `.decl {item.relation[:60]}(x: number)`",
    )


def _parameters(item: tree.Directive, findings: Findings) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value, span in item.parameters:
        if name in values:
            findings.warning(
                "E0215",
                f"parameter {quoted(name)} is given twice",
                primary(span, "this one counts"),
                advice="remove the other one",
            )
        if name not in PARAMETERS[item.kind]:
            allowed = PARAMETERS[item.kind]
            findings.warning(
                "E0214",
                f"`.{item.kind}` has no parameter {quoted(name)}",
                primary(_of_name(item, name, span, findings.source), "it is ignored"),
                advice=findings.did_you_mean(name, allowed) or f"it takes: {', '.join(allowed)}",
            )
        else:
            values[name] = value
            _check_value(item.kind, name, value, span, findings)
    if item.kind == "limitsize" and "n" not in values:
        findings.error(
            "E0217",
            f"`.limitsize` of {quoted(item.relation)} does not say how many facts",
            primary(item.relation_span, "no parameter `n`"),
            advice=f"write `.limitsize {item.relation[:60]}(n=1000)`",
        )
    return values


def _of_name(item: tree.Directive, name: str, value: Span, source: Source) -> Span:
    """Where the name of a parameter stands, which is before its value."""
    start = source.text.rfind(name, item.span.start, value.start)
    return value if start < 0 else Span(start, start + len(name))


def _check_value(kind: str, name: str, value: str, span: Span, findings: Findings) -> None:
    expected = _expected(kind, name, value)
    if expected is not None:
        findings.error(
            "E0215",
            f"parameter {quoted(name)} of `.{kind}` cannot be {quoted(value) if value else 'empty'}",
            primary(span, expected),
            advice=f"give {expected}"
            + ("; a file `….jsonl` is read as JSON lines without `IO`" if value in ("jsonl", "ndjson") else ""),
        )
    elif name in ("filename", "dbname") and (not value or "\0" in value or PurePosixPath(value).name in ("", "..")):
        findings.error(
            "E0216",
            f"{quoted(value)} is not the name of a file",
            primary(span, "not a file name"),
            advice="give a path, relative to the folder of "
            + ("facts (`-F`)" if kind == "input" else "outputs (`-D`)")
            + ', as in `filename="edges.csv"`',
        )


def _expected(kind: str, name: str, value: str) -> str | None:
    """What the value should have been, or None when it is good."""
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
