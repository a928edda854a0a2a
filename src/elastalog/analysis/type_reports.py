"""Reports of clashing types in a clause, and proposals for declarations of relations that a program uses but does not
declare.

Every report ends the check of its literal. Proposals take types from constants, functors and other relations, passed
along variables, and take names from variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from elastalog.analysis.draft import LIMITS, Draft, Kind, SeparatedAggregate, is_constructor
from elastalog.analysis.findings import Findings, Place, secondary
from elastalog.analysis.functors import FUNCTORS, Functor
from elastalog.analysis.program import Base, Part, StructuredType
from elastalog.analysis.variables import written_name
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT, TEXT_TESTS
from elastalog.syntax.tree import nodes_of

_CONVERSIONS = {
    Base.NUMBER: "to_number",
    Base.UNSIGNED: "to_unsigned",
    Base.FLOAT: "to_float",
    Base.SYMBOL: "to_string",
}
_NUMERIC = re.compile(r"(?=.{1,20}$)-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
"""A string that spells a number."""
_DATE = re.compile(r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})")
"""A date without quotes, which is arithmetic."""


class ClauseAtFaultError(Exception):
    """A clause has an error that has been reported."""


@dataclass(frozen=True, slots=True)
class TypeReports:
    """Reports about one clause; each raises ClauseAtFaultError. `places`: where each variable got its type."""

    declarations: Mapping[str, tree.RelationDeclaration]
    places: Mapping[str, Span]
    findings: Findings

    def text(self, term: tree.Term | SeparatedAggregate) -> str:
        return self.findings.source.text[term.span.start : term.span.end]

    def origin(self, term: tree.Term, base: Kind) -> tuple[Label, ...]:
        """Where the type of a variable comes from, unless it is this place."""
        if type(term) is not tree.Variable:
            return ()
        place = self.places.get(term.name)
        if place is None or place == term.span:
            return ()
        return (secondary(place, f"{quoted(written_name(term.name))} becomes {base.article} here"),)

    def fail(self, key: str, *places: Place, **values: object) -> NoReturn:
        """Reports an error and gives the clause up."""
        self.findings.error(key, *places, **values)
        raise ClauseAtFaultError

    def argument(self, atom: tree.Atom, position: int, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        if type(term) is tree.Variable:
            name = written_name(term.name)
            here = f"{quoted(name)} is {expected.article} here"
            self.variable(term, found, expected, here, _conversion_advice(found, expected, name))
        attribute = self.declarations[atom.relation].attributes[position]
        declared = Span(attribute.name_span.start, attribute.type_span.end)
        advice = self.constant_advice(term, found, expected)
        if type(term) is tree.Float and expected in (Base.NUMBER, Base.UNSIGNED):
            advice = f"write a whole number, or declare `{attribute.name}: float`"
        self.fail(
            "E0302", term.span, declared, position=position + 1, relation=atom.relation, found=found,
            expected=expected, advice=advice,
        )  # fmt: skip

    def part(self, field: Part, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        """Reports a field of a record or branch whose value has another type."""
        here, advice = f"field {quoted(field.name)} is {expected.article}", self.constant_advice(term, found, expected)
        if type(term) is tree.Variable:
            self.variable(term, found, expected, here, advice)
        self.fail("E0302.field", term.span, here=here, found=found, advice=advice)

    def variable(self, variable: tree.Variable, found: Kind, expected: Kind, here: str, advice: str) -> NoReturn:
        """Reports a variable that has one type here and another elsewhere."""
        self.fail(
            "E0301", variable.span, *self.origin(variable, found), name=written_name(variable.name), found=found,
            expected=expected, here=here, advice=advice,
        )  # fmt: skip

    def operand(self, comparison: tree.Comparison, term: tree.Term, found: Kind, expected: Kind) -> NoReturn:
        self.fail(
            "E0303.operand", term.span, *self.origin(term, found), operator=comparison.operator.removeprefix(NOT),
            found=found, expected=expected, advice=self.constant_advice(term, found, expected),
        )  # fmt: skip

    def comparison(self, comparison: tree.Comparison, left: Kind, right: Kind) -> NoReturn:
        one, other = comparison.left, comparison.right
        operator = comparison.operator.removeprefix(NOT)
        # Nothing is lost by a conversion to a float, and in the order of texts 10 comes before 9.
        is_left_converted = right is Base.FLOAT or (left is Base.SYMBOL and operator not in ("=", "!="))
        if type(other) is tree.Integer and left is Base.SYMBOL:
            text = self.text(other)[:40]
            advice = f'compare numbers, as in `to_number({self.text(one)[:40]})`, or texts, as in `"{text}"`'
        elif (is_left_converted and self.date_advice(other) is None) or self.date_advice(one) is not None:
            advice = self.constant_advice(one, left, right)
        else:
            advice = self.constant_advice(other, right, left)
        self.fail(
            "E0303", one.span, other.span, *self.origin(one, left), *self.origin(other, right), left=left, right=right,
            operator=operator, advice=advice,
        )  # fmt: skip

    def call(self, call: tree.Call, functor: Functor, position: int, found: Kind, expected: Kind) -> NoReturn:
        term, before = call.arguments[position], call.arguments[:position]
        possible = [each.parameter(0).value for each in functor.overloads]
        takes = f"takes {expected.article} here, not {found.article}"
        if functor.is_uniform and found.value not in possible:
            takes = f"does not take {found.article}"
        advice = self.constant_advice(term, found, expected)
        if call.functor == "+" and found is Base.SYMBOL:
            advice = "join symbols with `cat(a, b)`"
        whole = [self.text(each)[:40] for each in before if type(each) is not tree.Integer or each.is_unsigned]
        if (
            functor.is_uniform
            and found is Base.FLOAT
            and expected is not Base.SYMBOL
            and found.value in possible
            and whole
        ):
            converted = " and ".join(f"`to_float({text})`" for text in whole)
            advice = f"convert the {expected.value} with {converted}, or change a declaration"
        self.fail(
            "E0305", term.span, *self.origin(term, found), functor=call.functor, takes=takes, found=found,
            form=_forms(functor), advice=advice,
        )  # fmt: skip

    def literal(self, term: tree.Term, base: Base) -> NoReturn:
        limits = "finite floats" if base is Base.FLOAT else f"whole numbers from {LIMITS[base][0]} to {LIMITS[base][1]}"
        self.fail("E0304", term.span, text=self.text(term), base=base, limits=limits)

    def constant_advice(self, term: tree.Term, found: Kind, expected: Kind) -> str:
        text = self.text(term)
        if expected is Base.SYMBOL and (date := self.date_advice(term)) is not None:
            return date
        if type(term) is tree.Integer and expected is Base.SYMBOL:
            return f'write it as a symbol: `"{text[:40]}"`'
        if type(term) is tree.String and _NUMERIC.fullmatch(term.value):
            return f"write it without quotes: `{term.value}`"
        if type(term) is tree.Float and expected is not Base.SYMBOL:
            return "write a whole number"
        if type(term) is tree.String or type(term) is tree.Float:
            return f"write {expected.article} here, or change the type of the other side"
        if isinstance(term, tree.Call) and term.functor == "/" and expected is Base.FLOAT and found is not Base.SYMBOL:
            over = " / ".join(f"to_float({self.text(each)[:30]})" for each in term.arguments)
            return f"divide floats, since a quotient of whole numbers loses its fraction: `{over}`"
        return _conversion_advice(found, expected, text if len(text) <= 30 else "…")

    def date_advice(self, term: tree.Term) -> str | None:
        """What to write for a date without quotes; None if a term is none."""
        spelt = _DATE.fullmatch(self.text(term))
        if spelt is None:
            return None
        year, _, month, day = spelt.groups()
        return f'a date is a text: write `"{year}-{month:0>2}-{day:0>2}"`'

    def target(self, operator: str, term: tree.Term, found: Kind) -> NoReturn:
        key = "E0308.text" if operator in ("min", "max") and found is Base.SYMBOL else "E0308"
        self.fail(key, term.span, *self.origin(term, found), operator=operator, found=found)

    def result(self, aggregate: SeparatedAggregate, found: Kind, expected: Kind) -> NoReturn:
        name, written = aggregate.result.name, self.text(aggregate)
        advice = "give the result a variable of its own"
        if not isinstance(expected, StructuredType):
            other = f"{name}_{found.value}"
            advice = f"write `{other} = {written}, {name} = {_CONVERSIONS[expected]}({other})`"
            if "@" in name:  # nobody wrote it
                advice = f"write `{_CONVERSIONS[expected]}({written})`"
            if found is Base.FLOAT:
                advice += ", or declare the column as `float`, which keeps the fraction"
        self.fail(
            "E0303.result", aggregate.span, *self.origin(aggregate.result, expected), operator=aggregate.operator,
            found=found, expected=expected, advice=advice,
        )  # fmt: skip

    def foreign(self, call: tree.Call, structure: StructuredType) -> NoReturn:
        """Reports a value with a constructor that its type does not have."""
        note = f"its branches are {', '.join(quoted(functor) for functor in structure.branches)}"
        if structure.is_record:
            note = "`nil` and `[…]` belong to record types"
        self.fail("E0341", call.span, text=self.text(call), type=structure.name, note=note)

    def cast(self, cast: tree.Cast, found: Kind, expected: Kind) -> NoReturn:
        if isinstance(found, StructuredType) or isinstance(expected, StructuredType):
            advice = _conversion_advice(found, expected, "…")
        else:
            advice = f"convert the value with `{_CONVERSIONS[expected]}(…)`"
        self.fail(
            "E0311", cast.type_span, *self.origin(cast.term, found), type=cast.type_name, found=found,
            expected=expected, advice=advice,
        )  # fmt: skip


def _conversion_advice(found: Kind, expected: Kind, text: str) -> str:
    if isinstance(found, StructuredType) or isinstance(expected, StructuredType):
        return f"give a value of type {quoted(expected.value)}, or change a declaration"
    loss = ", which drops the fraction" if found is Base.FLOAT and expected is not Base.SYMBOL else ""
    return f"convert the {found.value} with `{_CONVERSIONS[expected]}({text})`{loss}, or change a declaration"


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
        """A declaration that would suit a relation."""
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
        """Where the type of a term can be found, or the type itself."""
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
        """Records that places share one type; the first known type wins."""
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
