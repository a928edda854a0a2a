"""Facts that compete: candidates for the keys of a choice domain, and facts that dominate others by subsumption. They
are found by plain search over what a look-up gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elastalog.analysis.program import Atom, CheckedProgram, Expression, Relation, Rule, Value, Variable, names_of
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import sort_key
from elastalog.provenance.comparisons import compare
from elastalog.provenance.fact import Fact
from elastalog.provenance.ground import NoValue, Ordinal, value_of
from elastalog.provenance.instantiate import are_met, match_atom
from elastalog.provenance.joins import LookUp, Pattern, assignments

MOST_RIVALS = 1_000
"""Candidates that are counted."""


def candidates(fact: Fact, program: CheckedProgram, look_up: LookUp, ordinal: Ordinal) -> int | None:
    """How many facts rules give that have a key of a choice domain in common with a fact, itself included. None if they
    are very many."""
    relation = program.relations[fact.relation]
    found = {sort_key(fact.values)}  # by which NaN equals NaN
    for rule in program.rules:
        if rule.head.relation == fact.relation:
            for key in relation.choices:
                for values in _given_by(rule, fact, key, look_up, ordinal):
                    found.add(sort_key(values))
                    if len(found) > MOST_RIVALS:
                        return None
    return len(found)


def _given_by(
    rule: Rule, fact: Fact, key: Sequence[int], look_up: LookUp, ordinal: Ordinal
) -> Iterator[tuple[Value, ...]]:
    """The facts that a rule gives with the values of a fact in the columns of a key."""
    arguments = [argument for argument in rule.head.arguments if isinstance(argument, Expression)]
    bindings: dict[str, Value] = {}
    for column in key:
        argument, value = arguments[column], fact.values[column]
        if isinstance(argument, Variable) and not compare("=", bindings.setdefault(argument.name, value), value):
            return
    for found in assignments(rule.body, bindings, look_up, ordinal):
        try:
            values = tuple(value_of(argument, found, ordinal) for argument in arguments)
        except NoValue:
            continue
        if all(compare("=", values[column], fact.values[column]) for column in key):
            yield values


def holders(fact: Fact, relation: Relation, look_up: LookUp) -> Iterator[tuple[Fact, str]]:
    """The facts that have a key of a choice domain in common with a fact which is absent, each with that key."""
    for key in relation.choices:
        pattern = [value if column in key else None for column, value in enumerate(fact.values)]
        names = ", ".join(f"{relation.attributes[column].name} = {fact.values[column]!r}" for column in key)
        for values in look_up(fact.relation, pattern):
            yield Fact(fact.relation, values), names


def dominating(
    fact: Fact, program: CheckedProgram, look_up: LookUp, ordinal: Ordinal, by: Fact | None = None
) -> Iterator[tuple[Fact, Rule]]:
    """The facts that dominate a fact, which need not be present, each with the subsumption; only `by`, if that is
    given."""
    width = len(fact.values)

    def with_both(relation: str, pattern: Pattern) -> Iterator[tuple[Value, ...]]:
        yield from look_up(relation, pattern)
        for other in (fact,) if by is None else (fact, by):
            fits = all(
                wanted is None or compare("=", wanted, value)
                for wanted, value in zip(pattern, other.values, strict=False)
            )
            if relation == other.relation and fits:
                yield other.values

    for rule in program.subsumptions:
        if rule.head.relation.removesuffix(MARK) != fact.relation:
            continue
        atoms = [literal for literal in rule.body if isinstance(literal, Atom) and literal.relation == fact.relation]
        one, other = atoms[:2]
        bindings: dict[str, Value] = {}
        deferred: list[tuple[Expression, Value]] = []
        sides = [(one, fact)] if by is None else [(one, fact), (other, by)]
        if not all(match_atom(atom, side.values, bindings, deferred) for atom, side in sides):
            continue
        for found in assignments(rule.body, bindings, with_both, ordinal):
            known = [entry for entry in deferred if all(name in found for name in names_of(entry[0]))]
            if are_met(known, found, ordinal):
                head = [argument for argument in rule.head.arguments if isinstance(argument, Expression)]
                pair = tuple(value_of(argument, found, ordinal) for argument in head)
                if sort_key(pair[width:]) != sort_key(fact.values):
                    yield Fact(fact.relation, pair[width:]), rule
