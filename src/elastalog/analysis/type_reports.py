"""What is said where the types of a clause clash, and what relations could be declared as that a program uses and does
not declare.

Every report of a clash ends the literal it is about. Proposals take types from constants, functors and other relations,
passed along variables, and names from variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from elastalog.analysis.draft import LIMITS, Draft, Field, Kind, SeparatedAggregate, Structure, is_constructor
from elastalog.analysis.findings import Findings, counted, primary, quoted, secondary, with_article
from elastalog.analysis.functor_values import NotRegular
from elastalog.analysis.functors import FUNCTORS, Functor
from elastalog.analysis.infer import Environment
from elastalog.analysis.program import Base
from elastalog.analysis.variables import written_name
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT, TEXT_TESTS
from elastalog.syntax.tree import nodes_of

_CONVERSIONS = {
    Base.NUMBER: "to_number",
    Base.UNSIGNED: "to_unsigned",
    Base.FLOAT: "to_float",
    Base.SYMBOL: "to_string",
}


class ClauseAtFaultError(Exception):
    """A clause is at fault and that has been reported."""


class TypeReports:
    """Reports about one clause; each raises ClauseAtFaultError."""

    def __init__(
        self, declarations: Mapping[str, tree.RelationDeclaration], environment: Environment, findings: Findings
    ) -> None:
        self.declarations = declarations
        self.environment = environment
        self.findings = findings

    def text(self, term: tree.Term) -> str:
        return self.findings.source.text[term.span.start : term.span.end]

    def origin(self, term: tree.Term, base: Kind) -> tuple[Label, ...]:
        """Where the type of a variable comes from, unless that is the place itself."""
        if type(term) is not tree.Variable:
            return ()
        place = self.environment.places.get(term.name)
        if place is None or place == term.span:
            return ()
        return (secondary(place, f"{quoted(written_name(term.name))} becomes {with_article(base)} here"),)

    def argument(self, atom: tree.Atom, position: int, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        attribute = self.declarations[atom.relation].attributes[position]
        declared = Span(attribute.name_span.start, attribute.type_span.end)
        if type(term) is tree.Variable:
            name = quoted(written_name(term.name))
            self.findings.error(
                "E0301",
                f"variable {name} is used as {found.value} and as {expected.value}",
                primary(term.span, f"{name} is {with_article(expected)} here"),
                *self.origin(term, found),
                advice=_conversion_advice(found, expected, written_name(term.name)),
            )
        else:
            name = quoted(atom.relation)
            self.findings.error(
                "E0302",
                f"argument {position + 1} of {name} is {with_article(expected)}, not {with_article(found)}",
                primary(term.span, with_article(found)),
                secondary(declared, f"declared as {expected.value} here"),
                advice=self.constant_advice(term, found, expected),
            )
        raise ClauseAtFaultError

    def operand(self, comparison: tree.Comparison, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        operator = quoted(comparison.operator.removeprefix(NOT))
        self.findings.error(
            "E0303",
            f"{operator} compares two {expected.value}s, not {with_article(found)}",
            primary(term.span, with_article(found)),
            *self.origin(term, found),
            advice=self.constant_advice(term, found, expected),
        )
        raise ClauseAtFaultError

    def comparison(self, comparison: tree.Comparison, left: Kind, right: Kind) -> NoReturn:
        self.findings.error(
            "E0303",
            f"{quoted(comparison.operator.removeprefix(NOT))} compares {with_article(left)} with {with_article(right)}",
            primary(comparison.left.span, with_article(left)),
            primary(comparison.right.span, with_article(right)),
            *self.origin(comparison.left, left),
            *self.origin(comparison.right, right),
            advice=self.constant_advice(comparison.right, right, left),
        )
        raise ClauseAtFaultError

    def call(self, call: tree.Call, functor: Functor, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        takes = [overload.parameter(0).value for overload in functor.overloads] if functor.is_uniform else []
        if functor.is_uniform and found.value not in takes:
            message = f"{quoted(call.functor)} does not take {with_article(found)}"
        else:
            message = f"{quoted(call.functor)} takes {with_article(expected)} here, not {with_article(found)}"
        if call.functor == "+" and found is Base.SYMBOL:
            advice = "join symbols with `cat(a, b)`"
        else:
            advice = self.constant_advice(term, found, expected)
        self.findings.error(
            "E0305",
            message,
            primary(term.span, with_article(found)),
            *self.origin(term, found),
            note=_forms(functor),
            advice=advice,
        )
        raise ClauseAtFaultError

    def literal(self, term: tree.Term, base: Base) -> NoReturn:
        limits = "finite floats" if base is Base.FLOAT else f"whole numbers from {LIMITS[base][0]} to {LIMITS[base][1]}"
        self.findings.error(
            "E0304",
            f"{quoted(self.text(term))} does not fit into {base.value}",
            primary(term.span, f"read as {base.value}"),
            note=f"{base.value} holds {limits}",
            advice="use a value within that range, or another type",
        )
        raise ClauseAtFaultError

    def constant_advice(self, term: tree.Term, found: Kind, expected: Kind) -> str:
        text = self.text(term)
        if type(term) is tree.Integer and expected is Base.SYMBOL:
            return f'write it as a symbol: `"{text[:40]}"`'
        if type(term) is tree.String and _looks_numeric(term.value):
            return f"write it without quotes: `{term.value}`"
        if type(term) is tree.Float and expected is not Base.SYMBOL:
            return "write a whole number, or make the other side a float"
        if type(term) is tree.String or type(term) is tree.Float:
            return f"write {with_article(expected)} here, or change the type of the other side"
        return _conversion_advice(found, expected, text if len(text) <= 30 else "…")

    def target(self, operator: str, term: tree.Term, found: Kind) -> NoReturn:
        self.findings.error(
            "E0308",
            f"{quoted(operator)} does not take {with_article(found)}",
            primary(term.span, with_article(found)),
            *self.origin(term, found),
            advice="aggregate a number, unsigned or float; convert with `to_number` where that is meant",
        )
        raise ClauseAtFaultError

    def result(self, aggregate: SeparatedAggregate, found: Kind, expected: Kind) -> NoReturn:
        self.findings.error(
            "E0303",
            f"{quoted(aggregate.operator)} gives {with_article(found)} here, not {with_article(expected)}",
            primary(aggregate.span, with_article(found)),
            *self.origin(aggregate.result, expected),
            advice="give the result a variable of its own"
            if isinstance(expected, Structure)
            else f"convert the result in a second step, for example `y = {_CONVERSIONS[expected]}(x)`",
        )
        raise ClauseAtFaultError

    # --- values made of values -------------------------------------------------------------------------------------

    def untyped(self, call: tree.Call, expected: Kind | None) -> NoReturn:
        shown = quoted(self.text(call))
        if expected is not None:
            message = f"{shown} stands where {with_article(expected)} is expected"
        else:
            message = f"the type of the record {shown} cannot be told"
        self.findings.error(
            "E0340",
            message,
            primary(call.span, "a record"),
            note="the declared type of a relation's argument, or of a variable that it equals, says what a record is",
            advice="use it, or the variable that it equals, as an argument that is declared with a record type",
        )
        raise ClauseAtFaultError

    def foreign(self, call: tree.Call, structure: Structure) -> NoReturn:
        has = ", ".join(quoted(functor) for functor in structure.branches)
        self.findings.error(
            "E0341",
            f"{quoted(self.text(call))} is not of type {quoted(structure.name)}",
            primary(call.span, f"{quoted(structure.name)} is expected here"),
            note="`nil` and `[…]` belong to record types" if structure.is_record else f"its branches are {has}",
            advice=f"write a value of type {quoted(structure.name)}",
        )
        raise ClauseAtFaultError

    def fields(self, call: tree.Call, structure: Structure, number: int) -> NoReturn:
        listed = ", ".join(field.name for field in structure.branches[call.functor])
        self.findings.error(
            "E0242",
            f"record type {quoted(structure.name)} has {counted(number, 'field')}, not {len(call.arguments)}",
            primary(call.span, f"{counted(len(call.arguments), 'field')} here"),
            advice=f"write `[{listed}]`; use `_` for fields that do not matter",
        )
        raise ClauseAtFaultError

    def part(self, call: tree.Call, field: Field, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        if type(term) is tree.Variable:
            name = quoted(written_name(term.name))
            message = f"variable {name} is used as {found.value} and as {expected.value}"
        else:
            message = f"field {quoted(field.name)} is {with_article(expected)}, not {with_article(found)}"
        self.findings.error(
            "E0301" if type(term) is tree.Variable else "E0302",
            message,
            primary(term.span, f"field {quoted(field.name)} is {with_article(expected)}"),
            *self.origin(term, found),
            advice=self.constant_advice(term, found, expected),
        )
        raise ClauseAtFaultError

    def order(self, comparison: tree.Comparison, structure: Structure) -> NoReturn:
        self.findings.error(
            "E0342",
            f"values of type {quoted(structure.name)} have no order",
            primary(comparison.span, f"{quoted(comparison.operator.removeprefix(NOT))} needs one"),
            note="only a type whose branches have no fields has an order: by the names of the branches",
            advice="compare the fields",
        )
        raise ClauseAtFaultError

    def cast(self, cast: tree.Cast, found: Kind, expected: Kind) -> NoReturn:
        self.findings.error(
            "E0311",
            f"{with_article(found)} cannot be taken for {with_article(expected)}",
            primary(cast.type_span, f"{quoted(cast.type_name)} is {with_article(expected)}"),
            *self.origin(cast.term, found),
            note="`as` keeps the value, or its 64 bits; what a symbol or record is known by does not tell what it is",
            advice=_conversion_advice(found, expected, "…")
            if isinstance(found, Structure) or isinstance(expected, Structure)
            else f"convert the value with `{_CONVERSIONS[expected]}(…)`",
        )
        raise ClauseAtFaultError

    def pattern(self, span: Span, fault: NotRegular) -> None:
        """A text that is no regular expression anywhere matches nothing, as one from a fact does."""
        report = self.findings.error if fault.is_one_elsewhere else self.findings.warning
        report(
            "E0310",
            f"the pattern is not a regular expression{'' if fault.is_one_elsewhere else ': nothing matches it'}",
            primary(span, str(fault)),
            advice=r"write a regular expression; a backslash before a special character takes it as it is: `\\(`",
        )
        if fault.is_one_elsewhere:
            raise ClauseAtFaultError


def _looks_numeric(text: str) -> bool:
    """Whether a string spells a number."""
    return len(text) <= 20 and text.isascii() and text.removeprefix("-").replace(".", "", 1).isdigit()


def _conversion_advice(found: Kind, expected: Kind, text: str) -> str:
    if isinstance(found, Structure) or isinstance(expected, Structure):
        return f"give a value of type {quoted(expected.value)}, or change a declaration"
    return f"convert the {found.value} with `{_CONVERSIONS[expected]}({text})`, or change a declaration"


def _forms(functor: Functor) -> str:
    if functor.is_uniform and len(functor.overloads) > 1:
        *first, last = [overload.result.value for overload in functor.overloads]
        return f"{quoted(functor.name)} takes arguments of one type: {', '.join(first)} or {last}"
    return f"its form is `{functor.signatures[0]}`"


_Place = tuple[str | int, str | int]
"""A column of a relation, by name and number, or a variable, by number of its clause and name."""


class Proposals:
    """What the clauses of a program say about its relations."""

    def __init__(self, draft: Draft) -> None:
        self._declarations = draft.declarations
        self._parents: dict[_Place, _Place] = {}
        self._types: dict[_Place, str] = {}
        self._names: dict[_Place, str] = {}
        for number, item in enumerate(draft.tree.items):
            if type(item) is tree.Clause:
                for atom in nodes_of(tree.Atom, (item.heads, item.body)):
                    self._read_atom(number, atom)
                for comparison in nodes_of(tree.Comparison, (item.heads, item.body)):
                    sides = [self._place(number, side) for side in (comparison.left, comparison.right)]
                    is_text = comparison.operator.removeprefix(NOT) in TEXT_TESTS
                    self._unite(*sides, *[Base.SYMBOL.value] * is_text)

    def declaration(self, atom: tree.Atom) -> str:
        """The declaration that would suit a relation."""
        used: list[str] = []
        attributes = []
        for place in range(min(len(atom.arguments), 8)):
            name = self._names.get((atom.relation, place), "")
            name = name if name and name not in used else f"x{place + 1}"
            used.append(name)
            attributes.append(f"{name}: {self._types.get(self._root((atom.relation, place)), 'number')}")
        return f".decl {atom.relation[:60]}({', '.join(attributes)})"

    def _read_atom(self, number: int, atom: tree.Atom) -> None:
        declared = self._declarations.get(atom.relation)
        for place, term in enumerate(atom.arguments):
            column = (atom.relation, place)
            if type(term) is tree.Variable:
                self._names.setdefault(column, term.name.strip("_?")[:30].lower())
            known = declared.attributes[place : place + 1] if declared else ()
            self._unite(column, self._place(number, term), *[attribute.type_name for attribute in known])

    def _place(self, number: int, term: tree.Term) -> _Place | str | None:
        """Where the type of a term is found, or the type itself."""
        match term:
            case tree.Variable():
                return number, term.name
            case tree.Integer():
                return Base.UNSIGNED.value if term.is_unsigned else Base.NUMBER.value
            case tree.Float():
                return Base.FLOAT.value
            case tree.String():
                return Base.SYMBOL.value
            case tree.Cast():
                return term.type_name
            case tree.Aggregate():
                return Base.NUMBER.value if term.target is None else self._place(number, term.target)
            case tree.Call() if not is_constructor(term.functor) and term.functor in FUNCTORS:
                functor = FUNCTORS[term.functor]
                arguments = [self._place(number, argument) for argument in term.arguments]
                if functor.is_uniform and len(functor.overloads) > 1:
                    self._unite(*arguments)
                    return next((place for place in arguments if place is not None), None)
                if len(functor.overloads) == 1:
                    for position, place in enumerate(arguments):
                        self._unite(place, functor.overloads[0].parameter(position).value)
                return functor.overloads[0].result.value
            case _:
                return None

    def _unite(self, *places: _Place | str | None) -> None:
        """What has one type; the first type that is known counts."""
        roots = list(dict.fromkeys(self._root(place) for place in places if isinstance(place, tuple)))
        known = [self._types[root] for root in roots if root in self._types]
        known += [place for place in places if isinstance(place, str)]
        for root in roots[1:]:
            self._parents[root] = roots[0]
        if roots and known:
            self._types[roots[0]] = known[0]

    def _root(self, place: _Place) -> _Place:
        while place in self._parents:
            place = self._parents[place]
        return place
