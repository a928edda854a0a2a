"""Which equivalence relations (`eqrel`) are kept as classes, and which by the rules that the word stands for.

As classes, a relation holds the pairs that it is given and that other rules derive, and a hidden relation says of every
member by which one its class is represented: a row a member instead of a row a pair. Atoms of the relation become joins
through the representative. The classes are made once the pairs are complete, so that a relation whose pairs depend on
the relation itself cannot be kept so: its rules derive all pairs one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from elastalog.analysis.program import Aggregation, Atom, CheckedProgram, Literal, Negation, Relation, Rule
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.variable_names import is_wildcard_name
from elastalog.planning.logical import Term


def kept_as_classes(program: CheckedProgram) -> frozenset[str]:
    """The equivalence relations that can be kept as classes."""
    return frozenset(
        name
        for name, relation in program.relations.items()
        if relation.is_equivalence and why_by_pairs(relation, program) is None
    )


def why_by_pairs(relation: Relation, program: CheckedProgram) -> str | None:
    """Why all pairs of an equivalence relation are kept, None if they need not be."""
    name = relation.name
    stratum = next(stratum for stratum in program.strata if name in stratum.relations)
    others = [rule for rule in stratum.rules if not rule.is_closure]
    if len(stratum.relations) > 1:
        return f"it depends on itself through `{next(n for n in stratum.relations if n != name)}`"
    if any(name in _read_by(rule) for rule in others):
        return "a rule of it reads it"
    if len(others) == len(stratum.rules):
        return "it is not closed"
    if relation.choices:
        return "it has a choice domain"
    if any(rule.head.relation.removesuffix(MARK) == name for rule in program.subsumptions):
        return "it has a subsumption"
    if any(directive.kind == "limitsize" for directive in relation.directives):
        return "it has a `.limitsize`"
    return None


def told_apart(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of an atom of an equivalence that say something: of one value, that it is in a class. So does a
    wildcard beside it, which would only repeat the class."""
    return tuple(t for t in terms if not (isinstance(t, str) and is_wildcard_name(t))) or terms[:1]


def _read_by(rule: Rule) -> Iterator[str]:
    pending: list[Literal] = list(rule.body)
    while pending:
        match pending.pop():
            case Atom(relation=name) | Negation(atom=Atom(relation=name)):
                yield name
            case Aggregation(bodies=bodies):
                pending.extend(literal for body in bodies for literal in body)
            case _:
                pass
