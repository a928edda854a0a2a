"""Declarations that relations could have which a program uses and does not declare: types from constants, functors and
other relations, passed along variables; names from variables."""

from __future__ import annotations

from elastalog.analysis.draft import Draft
from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.program import Base
from elastalog.analysis.structures import is_constructor
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT, TEXT_TESTS
from elastalog.syntax.walk import nodes_of

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
