"""Openings: what derivations lack for every value of some columns, so that the values are for the user to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elastalog.analysis.program import Apply, Atom, Base, CheckedProgram, Constant, Value, Variable
from elastalog.provenance.absence import Instantiation
from elastalog.provenance.fact import Fact


@dataclass(frozen=True)
class Opening:
    """The given atoms of a derivation that fail for every value of their open columns, as texts, and a fact that fits
    each. `needed`: how many facts the derivation is from. `is_nearest`: it is the nearest one of its fact."""

    texts: tuple[str, ...]
    examples: tuple[Fact, ...]
    needed: int
    is_nearest: bool


def opening_of(instantiation: Instantiation, program: CheckedProgram, is_nearest: bool) -> Opening | None:
    """What a failing derivation leaves open, None if nothing."""
    known, found = dict(instantiation.bindings), dict[str, Fact]()
    for atom, state in zip(instantiation.rule.body, instantiation.literals, strict=False):
        if not (isinstance(atom, Atom) and state.status == "fails" and state.fact is None):
            continue
        values = []
        for term, attribute in zip(atom.arguments, program.relations[atom.relation].attributes, strict=True):
            if isinstance(term, Constant):
                values.append(term.value)
            elif not isinstance(term, Apply) and attribute.base in _EXAMPLES:
                value = _EXAMPLES[attribute.base]
                values.append(known.setdefault(term.name, value) if isinstance(term, Variable) else value)
        if len(values) == len(atom.arguments) and program.is_given(atom.relation):
            found[state.text] = Fact(atom.relation, tuple(values))
    needed = sum(isinstance(literal, Atom) for literal in instantiation.rule.body)
    return Opening(tuple(found), tuple(found.values()), needed, is_nearest) if found else None


_EXAMPLES: Mapping[Base, Value] = {Base.SYMBOL: "x", Base.NUMBER: 1, Base.UNSIGNED: 1, Base.FLOAT: 1.0}
