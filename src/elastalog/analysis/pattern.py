"""Facts and patterns of facts written as text: `path(1, 4)`, `path(1, X)`, `alias("a", _)`."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.analysis.program import Base, CheckedProgram, Relation, Value
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.nearest import nearest
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse


@dataclass(frozen=True, slots=True)
class Free:
    """A place of a pattern that any value fits; places with the same name must hold the same value. `name` is None for
    `_`."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Pattern:
    relation: str
    terms: tuple[Value | Free, ...]

    @property
    def is_fact(self) -> bool:
        return not any(isinstance(term, Free) for term in self.terms)


def parse_pattern(text: str, program: CheckedProgram) -> Pattern:
    """The pattern that a text spells, checked against the program's declarations."""
    source = Source("<query>", text)
    atom = _only_atom(source)
    relation = program.relations.get(atom.relation)
    if relation is None:
        close = nearest(atom.relation, program.relations)
        raise _wrong(
            source, "E0606", f"there is no relation `{atom.relation}`", atom.relation_span,
            advice=f"did you mean `{close}`?" if close else "`elastalog show --stage checked` lists the relations",
        )  # fmt: skip
    if len(atom.arguments) != relation.arity:
        raise _wrong(
            source, "E0607", f"`{relation.name}` has {relation.arity} attributes, not {len(atom.arguments)}", atom.span,
            advice=f"write `{relation.name}({', '.join(a.name for a in relation.attributes)})`",
        )  # fmt: skip
    terms = tuple(_term(source, relation, i, argument) for i, argument in enumerate(atom.arguments))
    return Pattern(relation.name, terms)


def parse_fact(text: str, program: CheckedProgram) -> tuple[str, tuple[Value, ...]]:
    """The fact that a text spells: a pattern without free places."""
    pattern = parse_pattern(text, program)
    values = tuple(term for term in pattern.terms if not isinstance(term, Free))
    if len(values) < len(pattern.terms):
        span = Span(0, len(text))
        raise _wrong(Source("<query>", text), "E0608", "a fact has no variables", span, advice="write values only")
    return pattern.relation, values


def _only_atom(source: Source) -> syntax.Atom:
    text = source.text.strip()
    dotted = source if text.endswith(".") else Source(source.name, source.text + ".")
    tree, found = parse(dotted)
    errors = [d for d in found if d.severity == "error"]
    if errors and dotted is source:
        raise ElastalogError(errors)
    if errors:
        # The dot is ours: an error at its place is about the end of what was written.
        plain, _ = parse(source)
        at_end = Span(len(source.text), len(source.text))
        if not plain.items and all(label.span.start >= len(source.text) for d in errors for label in d.labels):
            raise _wrong(
                source, "E0609", "the atom is not complete", at_end, advice="write one atom, as in `path(1, X)`"
            )
        raise ElastalogError(errors)
    match tree.items:
        case (syntax.Clause(heads=(atom,), body=()),):
            return atom
    raise _wrong(
        source, "E0609", "this is not one atom", Span(0, len(source.text)), advice="write one atom, as in `path(1, X)`"
    )


def _term(source: Source, relation: Relation, position: int, argument: syntax.Term) -> Value | Free:
    base = relation.attributes[position].base
    match argument, base:
        case syntax.Variable(), _:
            return Free(argument.name)
        case syntax.Wildcard(), _:
            return Free(None)
        case syntax.String(), Base.SYMBOL:
            return argument.value
        case syntax.Integer(), Base.NUMBER if not argument.is_unsigned and argument.value < 1 << 63:
            return argument.value
        case syntax.Integer(), Base.UNSIGNED if argument.value >= 0:
            return argument.value
        case syntax.Integer(), Base.FLOAT if not argument.is_unsigned:
            return float(argument.value)
        case syntax.Float(), Base.FLOAT:
            return argument.value
    name = relation.attributes[position].name
    raise _wrong(
        source, "E0610", f"attribute `{name}` of `{relation.name}` is a {base.value}", argument.span,
        advice=f"write a {base.value}, a variable, or `_`",
    )  # fmt: skip


def _wrong(source: Source, code: str, message: str, span: Span, *, advice: str) -> ElastalogError:
    return ElastalogError([Diagnostic(code, message, (Label(span),), help=advice, source=source)])
