"""Queries: the body of a rule, asked once. `path(?a, X), edge(X, Y), X > 10` has the columns `X` and `Y`; with a head,
`far(X) :- path(1, X), X > 10`, those of the head. `?a` is always a parameter: a value that is bound, never pasted.

A query is checked as a rule of a hidden relation, against the declarations of the program alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from elastalog.analysis import program as checked
from elastalog.analysis.check import check
from elastalog.analysis.pattern import written_atom
from elastalog.analysis.program import CheckedProgram, Value, variables_in
from elastalog.analysis.values import NIL, Branch, Record
from elastalog.analysis.variables import variables_of
from elastalog.diagnostics.arguments import require_text, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label, error, warn_of
from elastalog.diagnostics.nearest import did_you_mean, nearest
from elastalog.diagnostics.source import NOWHERE, Source, Span
from elastalog.late import dataclass
from elastalog.syntax import tree as syntax
from elastalog.syntax.parser import parse
from elastalog.syntax.tokens import tokenize
from elastalog.syntax.tree import mapped, nodes_of

ANSWER = "answer"
"""The hidden relation that a query defines, unless the program has one of that name."""

_END = "found the end"
_TOLD = ("E0310", "E0621")
"""Warnings about values in a program that are as useful of a query."""


@dataclass(frozen=True, slots=True)
class Query:
    """A program whose only rules are those of the relation `name`: what is asked for."""

    name: str
    program: CheckedProgram

    @property
    def columns(self) -> tuple[checked.Attribute, ...]:
        return self.program.relations[self.name].attributes


def check_clause(clause: syntax.Clause, types: syntax.Tree, program: CheckedProgram) -> Query:
    """A query whose answers are what a rule of the program derives. The rule has been checked before, so only its own
    relations need to be known."""
    head = clause.heads[0]
    names = dict.fromkeys(atom.relation for atom in nodes_of(syntax.Atom, (head.arguments, clause.body)))
    own = replace(program, relations={name: program.relations[name] for name in names})
    name = free_name(ANSWER, own)
    declared = _declared(name, program.relations[head.relation].attributes)
    asked = replace(clause, heads=(replace(head, relation=name),), plan=None)
    return Query(name, _checked(declared, asked, None, types, own))


def free_name(stem: str, program: CheckedProgram) -> str:
    """A name that begins like this, and that no relation has."""
    while stem in program.relations:
        stem += "_"
    return stem


def check_query(text: str, types: syntax.Tree, program: CheckedProgram, parameters: Mapping[str, Value]) -> Query:
    """The query that a text spells. `types`: the tree of the program, of which the declarations of types are used.
    Raises ElastalogError with places in the text."""
    name = free_name(ANSWER, program)
    asked = _Text(text, name)
    clause = asked.clause(program)
    has_head = not asked.shift
    if has_head and clause.heads[0].relation in program.relations and not list(nodes_of(syntax.Atom, clause.body)):
        raise asked.wrong("E0618.head", form=", ".join(part.strip() for part in text.split(":-", 1)))
    clause = _bound(clause, parameters, asked, program)
    if has_head:
        columns, clause = _columns_of_head(clause)
    else:
        found_names = sorted((v.span.start, v.name) for v in variables_of(clause.body, is_deep=False))
        columns = tuple(dict.fromkeys(name for _, name in found_names))
    clause = replace(clause, heads=(syntax.Atom(name, (), NOWHERE, NOWHERE),), plan=None)
    return _with_columns(_checked(_declared(name, ()), clause, asked, types, program), name, columns, asked)


def require_columns(where: str, relation: str, columns: Collection[str]) -> None:
    """Raises ElastalogError if a filter compares a variable that occurs nowhere else: a column or a text was meant."""
    asked = _Text(where, ANSWER)
    tree, _ = parse(asked.source)
    uses = Counter(variable.name for variable in nodes_of(syntax.Variable, tree))
    for comparison in nodes_of(syntax.Comparison, tree):
        for side in (comparison.left, comparison.right):
            name = side.name if type(side) is syntax.Variable and side.name[0] not in "?_" else None
            if name is not None and uses[name] == 1 and name not in columns:
                listed = ", ".join(f"`{column}`" for column in columns)
                near = did_you_mean(name, columns)
                raise asked.wrong("E0618.column", side.span, name=name, relation=relation, columns=listed, near=near)


def parameters_in(text: str, program: CheckedProgram) -> tuple[str, ...]:
    """The names of a query's parameters, in order. Raises ElastalogError if the text is no query, or asks unknown
    relations."""
    asked = _Text(text, free_name(ANSWER, program))
    clause = asked.clause(program)
    for atom in nodes_of(syntax.Atom, clause.body):
        if atom.relation not in program.relations:
            advice = did_you_mean(atom.relation, program.relations)
            raise asked.wrong("E0204.query", atom.span, name=atom.relation, advice=advice)
    names = (variable.name for variable in nodes_of(syntax.Variable, (*clause.heads, *clause.body)))
    return tuple(dict.fromkeys(name[1:] for name in names if name.startswith("?")))


def _checked(
    declared: syntax.RelationDeclaration,
    clause: syntax.Clause,
    asked: _Text | None,
    types: syntax.Tree,
    program: CheckedProgram,
) -> CheckedProgram:
    """The program that consists of one clause and the declarations it needs. Without `asked`, the clause is a rule of
    the program."""
    others = (syntax.RelationDeclaration, syntax.Directive, syntax.Pragma, syntax.Clause, syntax.Subsumption)
    items: list[syntax.Item] = [item for item in types.items if not isinstance(item, others)]
    items += [_declared(relation.name, relation.attributes) for relation in program.relations.values()]
    source = Source("<rule>", "") if asked is None else asked.source
    made, found = check(syntax.Tree(source, (*items, declared, clause)))
    _refuse(found, asked, program)
    assert made is not None
    return made


# --- what was written ----------------------------------------------------------------------------------------------


class _Text:
    """A query as it was written, and as the clause in `source`, where places are moved by `shift` (0 if the query has a
    head)."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        body = text.rstrip().removesuffix(".")
        if not body.strip():
            raise self.wrong("E0618.empty")
        if body.lstrip().startswith("?-"):
            raise self.wrong("E0618.prompt")
        prefix = "" if ":-" in tokenize(Source("<query>", body))[0].texts else f"{name}() :-\n"
        self.source, self.shift = Source("<query>", f"{prefix}{body}\n."), len(prefix)

    def wrong(self, key: str, place: Span | None = None, **values: Any) -> ElastalogError:
        """An error about a place of the clause, or about the whole query."""
        span = Span(0, len(self.text)) if place is None else Span(*(offset - self.shift for offset in place))
        return error(key, span, source=Source("<query>", self.text), **values)

    def clause(self, program: CheckedProgram) -> syntax.Clause:
        """The clause as it can be read. Raises ElastalogError if the text has errors, or is none."""
        tree, found = parse(self.source)
        _refuse(found, self, program)
        match tree.items:
            case (syntax.Clause(heads=(_,)) as clause,):
                return clause
        raise self.wrong("E0618.several")


def _columns_of_head(clause: syntax.Clause) -> tuple[tuple[str, ...], syntax.Clause]:
    """The names of the columns, and the clause with an equation for each that is not a variable of the body."""
    taken = {variable.name for variable in variables_of((*clause.heads, *clause.body), is_deep=True)}
    outside = {variable.name for variable in variables_of(clause.body, is_deep=False)}
    names: list[str] = []
    body = list(clause.body)
    for number, term in enumerate(clause.heads[0].arguments, 1):
        if isinstance(term, syntax.Variable) and term.name not in names:
            names.append(term.name)
            if term.name not in outside:  # a witness of an aggregate, which it is by being used outside
                body.append(syntax.Comparison("=", term, term, term.span, term.span))
            continue
        name = f"c{number}"
        while name in taken:
            name += "_"
        names.append(name)
        body.append(syntax.Comparison("=", syntax.Variable(name, term.span), term, term.span, term.span))
    return tuple(names), replace(clause, body=tuple(body))


# --- parameters ----------------------------------------------------------------------------------------------------


def _bound(
    clause: syntax.Clause, parameters: Mapping[str, Value], asked: _Text, program: CheckedProgram
) -> syntax.Clause:
    """The clause with values in place of parameters. All parameters must be given, and all that are given must be
    used."""
    used: set[str] = set()
    wanted = {variable.name for variable in nodes_of(syntax.Variable, clause)}

    def bind(term: Any) -> Any:
        if not isinstance(term, syntax.Variable) or not term.name.startswith("?"):
            return term
        name = term.name[1:]
        if name not in parameters:
            unused = [given for given in parameters if f"?{given}" not in wanted]
            near = nearest(name, unused) or next(iter(unused), None)
            advice = f"`{near}` was given a value, and the query has no `?{near}`: is that `?{name}`?"
            given, typed = ('"…"', "…") if _is_text(term, clause, program) else ("1", "1")
            values = {"example": name or "name", "given": given, "typed": typed}
            raise asked.wrong("E0619", term.span, name=name, advice=near and advice, **values)
        used.add(name)
        return constant(parameters[name], term.span)

    found = mapped(clause, bind)
    unused = [name for name in parameters if name not in used]
    if unused:
        raise error("E0619.unused", listed=", ".join(f"`?{name}`" for name in unused))
    return found


def _is_text(variable: syntax.Variable, clause: syntax.Clause, program: CheckedProgram) -> bool:
    """Whether a variable stands in a column of texts."""
    known = [atom for atom in nodes_of(syntax.Atom, clause.body) if atom.relation in program.relations]
    places = (zip(atom.arguments, program.relations[atom.relation].attributes, strict=False) for atom in known)
    return any(term == variable and column.base is checked.Base.SYMBOL for both in places for term, column in both)


def constant(value: Value | tuple[Any, ...] | None, span: Span) -> syntax.Term:
    """A value as a term. Records may be plain tuples, and nil `None`, as users give them."""
    if value is NIL or value is None:
        return syntax.Call("nil", (), span, span)
    if isinstance(value, tuple | Branch):
        parts = value if isinstance(value, tuple) else value.parts
        functor = "[]" if isinstance(value, tuple) else f"${value.name}"
        return syntax.Call(functor, tuple([constant(part, span) for part in parts]), span, span)
    if isinstance(value, str):
        return syntax.String(value, span)
    if isinstance(value, float):
        return syntax.Float(value, span)
    if value < 0:
        return syntax.Call("neg", (syntax.Integer(-value, False, span),), span, span)
    return syntax.Integer(value, False, span)


# --- what it means -------------------------------------------------------------------------------------------------


def _declared(name: str, attributes: tuple[checked.Attribute, ...]) -> syntax.RelationDeclaration:
    written = tuple(syntax.Attribute(a.name, a.type_name, NOWHERE, NOWHERE) for a in attributes)
    return syntax.RelationDeclaration(name, written, (), NOWHERE, NOWHERE)


def _with_columns(asked: CheckedProgram, name: str, columns: tuple[str, ...], text: _Text) -> Query:
    """The checked query with its columns in the head, now that their types are known."""
    bases: dict[str, checked.Variable] = {}
    rules = []
    for rule in asked.rules:
        own = {variable.name: variable for variable in variables_in(rule.body, is_deep=True)}
        missing = next((column for column in columns if column not in own), None)
        if missing is not None:
            raise text.wrong("E0618.alternatives", name=missing)
        bases.update({column: own[column] for column in columns})
        rules.append(replace(rule, head=checked.Atom(name, tuple(own[column] for column in columns), rule.span)))
    attributes = tuple(checked.Attribute(column, bases[column].base.value, bases[column].base) for column in columns)
    relation = replace(asked.relations[name], attributes=attributes)
    by_number = {rule.number: rule for rule in rules}
    strata = tuple(
        replace(stratum, rules=tuple(by_number[rule.number] for rule in stratum.rules)) for stratum in asked.strata
    )
    relations = {**asked.relations, name: relation}
    return Query(name, replace(asked, relations=relations, rules=tuple(rules), strata=strata))


# --- diagnostics ---------------------------------------------------------------------------------------------------


def _refuse(found: tuple[Diagnostic, ...], asked: _Text | None, program: CheckedProgram) -> None:
    """Raises the errors among the findings, as errors about the text of the query. Labels other than the primary ones
    point to declarations elsewhere and are dropped."""
    text, shift = ("", 0) if asked is None else (asked.text, asked.shift)
    source = Source("<query>", text)
    errors, told = [], []
    for fault in found:
        if fault.severity == "error":
            labels = tuple(_placed(label, shift, len(text)) for label in fault.labels if label.primary)
            message = fault.message
            if any(label.span.start >= len(text) for label in labels):  # the dot was put there by `_Text`
                message = message.replace("found `.`", _END)
            advice = fault.help
            if fault.code == "E0114":
                span = labels[0].span
                relation = program.relations.get(text[span.start : span.end])
                advice = advice if relation is None else f"write `{written_atom(relation)}`"
            name = text[labels[0].span.start : labels[0].span.end] if labels else ""
            if name.startswith("?") and fault.code in ("E0302", "E0303", "E0340"):
                is_text = "is a symbol" in message or "a symbol is expected" in message
                quoted = f'a text, as `"…"`; on the command line `--param \'{name[1:]}="…"\'`, in Python `str(…)`'
                advice = f"give `{name}` {quoted if is_text else 'a number'}"
                if fault.code == "E0340":
                    advice += "; a missing value (None) fits no such column"
                    fault = replace(fault, notes=())
            errors.append(replace(fault, message=message, help=advice, labels=labels, source=source))
        elif fault.code in _TOLD and text:  # a rule of the program has no text here, and was told of before
            labels = tuple(_placed(label, shift, len(text)) for label in fault.labels)
            told.append(replace(fault, labels=labels, source=source))
    if errors:
        raise ElastalogError(errors)
    for warning in told:
        warn_of(warning)


def about_part(failed: ElastalogError, part: str, shift: int) -> ElastalogError:
    """An error about a query, as one about the part of it in brackets that begins `shift` characters further on."""
    found = []
    for fault in failed.diagnostics:
        if fault.source is not None:
            labels = tuple(_placed(label, shift, len(part)) for label in fault.labels)
            is_end = any(label.span.start >= len(part) for label in labels)
            message = fault.message.replace("found `)`", _END) if is_end else fault.message
            fault = replace(fault, message=message, labels=labels, source=Source(fault.source.name, part))
        found.append(fault)
    return type(failed)(found)


def _placed(label: Label, shift: int, end: int) -> Label:
    start, last = (min(max(offset - shift, 0), end) for offset in label.span)
    return replace(label, span=Span(start, max(start, last)))


# --- the values of parameters ----------------------------------------------------------------------------------------


def parameter_values(parameters: Mapping[str, object]) -> dict[str, Value]:
    """The values of parameters by name, without the question mark, as the language has them."""
    for name in parameters:
        require_text("a parameter is named by a text", name, 'give a mapping, such as `parameters={"from": 1}`')
    return {name.removeprefix("?"): _parameter(name, value) for name, value in parameters.items()}


def _parameter(name: str, value: object) -> Value:
    """The value of a parameter, as the language has it."""
    with suppress(UnicodeEncodeError, OverflowError):  # a lone surrogate, a fraction beyond all floats
        if isinstance(value, str):
            value.encode()
            return str(value)
        if not isinstance(value, bool):
            if isinstance(value, Integral):
                return int(value)
            if isinstance(value, Real):
                return float(value)
    if isinstance(value, Branch):
        return Branch(value.name, *(_parameter(name, part) for part in value.parts))
    if isinstance(value, tuple):
        return Record((_parameter(name, part) for part in value), ())
    if value is None:
        return NIL
    is_time = hasattr(value, "isoformat")
    advice = f"give its text: `{name}=value.isoformat()`" if is_time else "give a number, a text, or a tuple of them"
    raise wrong_kind(f"the value of `?{name}` is a number or a text", value, advice)


def parameter_as_json(value: Any) -> Any:
    """A value in a JSON form that keeps its kind: records are lists, nil is null, and what JSON lacks is an object."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, Branch):
        return {"branch": value.name, "parts": list(map(parameter_as_json, value.parts))}
    if isinstance(value, tuple):
        return list(map(parameter_as_json, value))
    return None if value is NIL else value


def parameter_from_json(given: Any) -> Any:
    """The value that JSON means, as users have it."""
    match given:
        case list():
            return tuple(map(parameter_from_json, given))
        case {"float": "nan" | "inf" | "-inf" as text}:
            return float(text)
        case {"branch": str() as name, "parts": list() as parts}:
            return Branch(name, *map(parameter_from_json, parts))
    return given
