"""Facts and patterns of facts written as text: `path(1, 4)`, `path(1, X)`, `alias("a", _)`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from elastalog.analysis.draft import constant_value
from elastalog.analysis.program import Base, CheckedProgram, Relation, StructuredType, Value
from elastalog.analysis.values import NIL, Branch, Record, sort_key
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error, finding
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass
from elastalog.syntax import tree as syntax
from elastalog.syntax.cursor import BY_PLACE
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

    def is_open_at(self, column: int) -> bool:
        """Whether any value fits in a column, whatever is in the others."""
        term = self.terms[column]
        return isinstance(term, Free) and (term.name is None or self.terms.count(term) == 1)

    def fits(self, values: tuple[Value, ...]) -> bool:
        """Whether a fact of its relation with these values fits it."""
        known: dict[str, Value] = {}
        for term, value in zip(self.terms, values, strict=True):
            if not isinstance(term, Free):
                if sort_key(term) != sort_key(value):  # by which NaN equals NaN
                    return False
            elif term.name is not None and sort_key(known.setdefault(term.name, value)) != sort_key(value):
                return False
        return True


_OR_ELSE = ", a variable, or `_`"
"""What may stand in a pattern in the place of a value, for the help line."""

_NAMED = {"nan": math.nan, "inf": math.inf}
"""Floats as facts show them, which no literal of the language spells. They are values in facts and patterns of facts;
in queries, as in rules, they are names of variables."""


def parse_query(text: str, program: CheckedProgram) -> Pattern:
    """The pattern that a query of one atom is, checked against the program's declarations."""
    return _parse(text, program, {}, _OR_ELSE)


def parse_pattern(text: str, program: CheckedProgram) -> Pattern:
    """The pattern of facts that a text spells, checked against the program's declarations."""
    return _parse(text, program, _NAMED, _OR_ELSE)


def parse_selection(text: str, program: CheckedProgram) -> Pattern:
    """A pattern that selects facts to change. A name that occurs only once is refused: if quotes were forgotten, far
    too many facts would fit."""
    return _parse(text, program, _NAMED, ", or `_`", is_selection=True)


def _parse(
    text: str, program: CheckedProgram, named: Mapping[str, float], or_else: str, is_selection: bool = False
) -> Pattern:
    source = Source("<query>", text)
    atom = _only_atom(source, program.relations)
    relation = program.relations.get(atom.relation)
    if relation is None:
        advice = did_you_mean(atom.relation, program.relations) or "the program declares: " + ", ".join(
            program.relations
        )
        raise error("E0606", atom.relation_span, source=source, name=atom.relation, advice=advice)
    arity, given = relation.arity, len(atom.arguments)
    if given != arity:
        form = written_atom(relation)
        raise error("E0607", atom.span, source=source, relation=relation.name, arity=arity, given=given, form=form)
    terms = tuple(_term(source, relation, i, argument, named, or_else) for i, argument in enumerate(atom.arguments))
    for argument, term, attribute in zip(atom.arguments, terms, relation.attributes, strict=True):
        if is_selection and isinstance(term, Free) and term.name is not None and terms.count(term) == 1:
            quoted = f'"{term.name}"' if attribute.base is Base.SYMBOL else None
            raise error("E0608.once", argument.span, source=source, name=term.name, quoted=quoted)
    return Pattern(relation.name, terms)


def parse_fact(text: str, program: CheckedProgram) -> tuple[str, tuple[Value, ...]]:
    """The fact that a text spells: a pattern without free places."""
    pattern = _parse(text, program, _NAMED, "")
    values = tuple(term for term in pattern.terms if not isinstance(term, Free))
    if len(values) < len(pattern.terms):
        raise error("E0608", Span(0, len(text)), source=Source("<query>", text))
    return pattern.relation, values


def require_fact(text: str, program: CheckedProgram) -> None:
    """Raises ElastalogError if a text that names a missing fact is a pattern."""
    if not parse_pattern(text, program).is_fact:
        raise error("E0608.missing", Span(0, len(text)), source=Source("<query>", text))


_ADVICE = "write one atom, as in `path(1, X)`"


def _only_atom(source: Source, relations: Mapping[str, Relation]) -> syntax.Atom:
    """The single atom that a text consists of, with or without a final dot."""
    whole = Span(0, len(source.text))
    if not source.text.strip(" .\t\r\n"):
        raise error("E0609", whole, source=source, what="an atom")
    if (name := source.text.strip()) in relations:
        raise error("E0609.alone", whole, source=source, name=name, form=written_atom(relations[name]))
    tree, found = parse(source if source.text.rstrip().endswith(".") else Source(source.name, source.text + "."))
    errors = [_of_atom(d, source) for d in found if d.severity == "error"]
    if errors:
        raise ElastalogError(errors)
    match tree.items:
        case (syntax.Clause(heads=(atom,), body=()),):
            return atom
    raise error("E0609", whole, source=source, what="one atom")


def _of_atom(error: Diagnostic, source: Source) -> Diagnostic:
    """Turns an error in a program of one atom into an error about the atom. The final dot may be ours: it is not shown,
    and an error there is about the end of the text."""
    end = len(source.text)
    labels = tuple(replace(at, span=Span(min(at.span.start, end), min(at.span.end, end))) for at in error.labels)
    start = min((label.span.start for label in labels if label.primary), default=0)
    if not source.text[start:].rstrip(". \t\r\n"):
        return replace(
            error, code="E0609", message="the atom is not complete", labels=labels, help=_ADVICE, source=source
        )
    rest, wrong = parse(Source(source.name, source.text[:start] + "."))
    if not wrong and len(rest.items) == 1:
        return finding("E0609.end", Span(start, end), source=source)
    is_of_program = error.code == "E0110" and error.help != BY_PLACE
    advice = _ADVICE if is_of_program else error.help or _ADVICE
    return replace(error, labels=labels, help=advice, source=source)


def written_atom(relation: Relation) -> str:
    """An atom of a relation, with the names of its attributes as arguments."""
    return f"{relation.name}({', '.join(attribute.name for attribute in relation.attributes)})"


def _term(
    source: Source,
    relation: Relation,
    position: int,
    argument: syntax.Term,
    named: Mapping[str, float],
    or_else: str,
) -> Value | Free:
    attribute = relation.attributes[position]
    base = attribute.base
    if base is Base.RECORD:
        value = _record(argument, attribute.type_name, attribute.structures or {})
    else:
        value = _plain(argument, base, named)
    if value is not None:
        return value
    if isinstance(argument, syntax.Variable | syntax.Wildcard):
        return Free(getattr(argument, "name", None))
    raise error(
        "E0610", argument.span, source=source, attribute=attribute.name, relation=relation.name, kind=base.article,
        otherwise=or_else, bare=_unquoted(argument, base),
        whole="a whole number" if type(argument) is syntax.Float and base is not Base.SYMBOL else None,
    )  # fmt: skip


def _unquoted(argument: syntax.Term, base: Base) -> str | None:
    """The number that a string contains where a number is expected."""
    if type(argument) is not syntax.String or base not in (Base.NUMBER, Base.UNSIGNED, Base.FLOAT):
        return None
    is_whole = argument.value.removeprefix("-" * (base is not Base.UNSIGNED)).isdecimal()
    return argument.value if is_whole and argument.value.isascii() else None


def _plain(term: syntax.Term, base: Base, named: Mapping[str, float]) -> Value | None:
    """The value of a base type that a term spells. A float may also be given by name, with or without a minus."""
    match term:
        case syntax.Variable(name=name):
            return named.get(name) if base is Base.FLOAT else None
        case syntax.Call(functor="neg", arguments=(syntax.Variable(name=name),)) if base is Base.FLOAT:
            return -named[name] if name in named else None
    return constant_value(term, base)


def _record(term: syntax.Term, type_name: str, structures: Mapping[str, StructuredType]) -> Value | None:
    """The value of a type made of parts that a term spells, None if it spells none."""
    if not isinstance(term, syntax.Call):
        return None
    branches = structures[type_name].branches
    if term.functor == "nil":
        return NIL if "[]" in branches else None
    fields = branches.get(term.functor)
    if fields is None or len(fields) != len(term.arguments):
        return None
    parts = [
        _plain(argument, field.base, _NAMED)
        if field.structure is None
        else _record(argument, field.structure, structures)
        for field, argument in zip(fields, term.arguments, strict=True)
    ]
    if any(part is None for part in parts):
        return None
    record = Record(parts, tuple([field.base for field in fields]))
    return record if term.functor == "[]" else Branch.of(term.functor[1:], record)
