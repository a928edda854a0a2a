"""Which equivalence relations (`eqrel`) are kept as classes, and which by the rules that the word stands for.

As classes, a relation holds the pairs that it is given and that other rules derive, and a hidden relation says of every
member by which one its class is represented: a row a member instead of a row a pair. Atoms of the relation become joins
through the representative. The classes are made once the pairs are complete. A relation whose pairs depend on the
relation itself is *merged*: its classes are formed while the recursion goes on. The level of a pair
in such a recursion is a matter of two members, and no row of one could tell it: when it is asked for, chains of pairs
do.
"""

from __future__ import annotations

from elastalog.analysis.program import CheckedProgram, Relation, Stratum, atoms_in
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.variables import is_wildcard_name
from elastalog.planning.logical import Term


def kept_as_classes(program: CheckedProgram, *, can_merge: bool = False) -> frozenset[str]:
    """The equivalence relations that can be kept as classes; those that depend on themselves if they `can_merge`."""
    return frozenset(
        name
        for name, relation in program.relations.items()
        if relation.is_equivalence
        and _why_not_closed(relation, program) is None
        and (_why_in_recursion(relation, program) is None or (can_merge and _is_plain(relation, program)))
    )


def why_by_pairs(relation: Relation, program: CheckedProgram) -> str | None:
    """Why all pairs of an equivalence relation are kept, None if they need not be."""
    return _why_in_recursion(relation, program) or _why_not_closed(relation, program)


def depends_on_itself(equivalence: str, program: CheckedProgram) -> bool:
    """Whether an equivalence takes part in its own recursion, apart from its closure."""
    return _why_in_recursion(program.relations[equivalence], program) is not None


def _stratum_of(relation: Relation, program: CheckedProgram) -> Stratum:
    return next(stratum for stratum in program.strata if relation.name in stratum.relations)


def _is_plain(relation: Relation, program: CheckedProgram) -> bool:
    """Whether nothing in the recursion of a relation depends on the order in which facts are found."""
    own = _stratum_of(relation, program).relations
    return all(_why_ordered(program.relations[name], program) is None for name in own)


def _why_in_recursion(relation: Relation, program: CheckedProgram) -> str | None:
    name, stratum = relation.name, _stratum_of(relation, program)
    if len(stratum.relations) > 1:
        return f"it depends on itself through `{next(n for n in stratum.relations if n != name)}`"
    if any(atom.relation == name for rule in stratum.rules if not rule.is_closure for atom in atoms_in(rule.body)):
        return "a rule of it reads it"
    return None


def _why_not_closed(relation: Relation, program: CheckedProgram) -> str | None:
    rules = _stratum_of(relation, program).rules
    if not any(rule.is_closure and rule.head.relation == relation.name for rule in rules):
        return "it is not closed"
    return _why_ordered(relation, program)


def _why_ordered(relation: Relation, program: CheckedProgram) -> str | None:
    name = relation.name
    if relation.choices:
        return "it has a choice domain"
    if any(rule.head.relation.removesuffix(MARK) == name for rule in program.subsumptions):
        return "it has a subsumption"
    if any(directive.kind == "limitsize" for directive in relation.directives):
        return "it has a `.limitsize`"
    return None


def told_apart(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of an atom of an equivalence that matter: a single value only says that it is in some class, and so
    does a wildcard beside it, which would only repeat the class."""
    return tuple(t for t in terms if not (isinstance(t, str) and is_wildcard_name(t))) or terms[:1]
