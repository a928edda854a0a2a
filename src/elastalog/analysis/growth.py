"""Rules that may grow without end: recursion that computes ever new values, and nothing that bounds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from elastalog.analysis import program as checked
from elastalog.analysis.draft import is_constructor
from elastalog.analysis.subsumptions import MARK, keeping_best
from elastalog.diagnostics.diagnostic import Diagnostic, finding

_GROWING: Final = frozenset(("+", "-", "*", "^", "cat", "replace", "add_days", "add_seconds"))
_ORDERS: Final = frozenset(("<", "<=", ">", ">="))


def warnings_of_growth(program: checked.CheckedProgram) -> list[Diagnostic]:
    """A warning for every rule that may grow without end. Of relations with subsumption it is one that makes the
    greatest value greater, which a cycle of facts does for ever."""
    greatest = dict(_keeping_greatest(program))
    limited = {
        name
        for name, relation in program.relations.items()
        if relation.choices or any(directive.kind == "limitsize" for directive in relation.directives)
    }
    judged = {rule.head.relation.removesuffix(MARK) for rule in program.subsumptions}
    found = []
    for stratum in program.strata:
        if limited.isdisjoint(stratum.relations):
            is_judged = not judged.isdisjoint(stratum.relations)
            for rule, place, grown in growing(stratum.rules, stratum.relations):
                if not is_judged or (
                    greatest.get(rule.head.relation) == place and getattr(grown, "functor", "-") != "-"
                ):
                    found.append(
                        _warning(rule, grown, advice(program.relations, rule, place, grown, is_judged=is_judged))
                    )
    return found


def _keeping_greatest(program: checked.CheckedProgram) -> Iterator[tuple[str, int]]:
    """The relations that keep the greatest value of a column, and its place."""
    for rule in program.subsumptions:
        names = [next(checked.names_of(argument), None) for argument in rule.head.arguments]
        ends = list(zip(names, names[len(names) // 2 :], strict=False))
        for literal in rule.body:
            if type(literal) is checked.Comparison and literal.operator in ("<", ">"):
                sides = [next(checked.names_of(side), None) for side in (literal.left, literal.right)]
                less, greater = sides if literal.operator == "<" else sides[::-1]
                if (less, greater) in ends:
                    yield rule.head.relation.removesuffix(MARK), ends.index((less, greater))


def growing(
    rules: Iterable[checked.Rule], members: Collection[str]
) -> Iterator[tuple[checked.Rule, int, checked.Expression]]:
    """The rules of a stratum whose head has a value that is computed from one of the recursion and that nothing bounds:
    no comparison by order, and no atom of a relation outside the recursion. Each with the place of the value, and what
    computes it."""
    for rule in rules:
        if not rule.is_recursive:
            continue
        atoms = [literal for literal in rule.body if type(literal) is checked.Atom]
        recursive = {name for atom in atoms if atom.relation in members for name in checked.names_of(*atom.arguments)}
        bounds = {name for atom in atoms if atom.relation not in members for name in checked.names_of(*atom.arguments)}
        given = recursive | bounds
        computed: dict[str, checked.Expression] = {}
        for literal in rule.body:
            if type(literal) is checked.Comparison and literal.operator in _ORDERS:
                bounds |= set(checked.names_of(literal.left, literal.right))
            elif type(literal) is checked.Comparison and literal.operator == "=":
                for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if (
                        type(side) is checked.Variable
                        and type(other) in (checked.Apply, checked.Variable)
                        and side.name not in given
                    ):
                        computed[side.name] = other
        for place, argument in enumerate(rule.head.arguments):
            grown = computed.get(argument.name) if type(argument) is checked.Variable else argument
            if type(grown) is checked.Apply and _grows(grown, argument, dict(computed), recursive, bounds):
                yield rule, place, grown
                break


def _grows(
    grown: checked.Apply,
    argument: object,
    computed: dict[str, checked.Expression],
    recursive: Collection[str],
    bounds: Collection[str],
) -> bool:
    """Whether a value grows with those of the recursion."""
    if type(argument) is checked.Variable and argument.name in bounds:
        return False
    pending: list[checked.Expression] = [grown]
    makes_new, uses = False, False
    while pending:
        expression = pending.pop()
        if type(expression) is checked.Variable:
            uses = uses or (expression.name in recursive and expression.name not in bounds)
            pending += [computed.pop(expression.name)] if expression.name in computed else []
        elif type(expression) is checked.Apply:
            functor = expression.functor
            makes_new = makes_new or functor in _GROWING or functor[0] == "@" or is_constructor(functor)
            pending += expression.arguments
    return makes_new and uses


def advice(
    relations: Mapping[str, checked.Relation],
    rule: checked.Rule,
    place: int,
    grown: checked.Expression,
    *,
    is_judged: bool,
) -> str:
    """What bounds a rule: a comparison, or a column that keeps the least value for all others of a fact, unless the
    relation `is_judged` by a subsumption already."""
    relation = relations[rule.head.relation]
    if is_judged:
        return "over a cycle that improves the value there is no best one: bound it by a comparison, as in `x < 1000`"
    if relation.arity == 1 or grown.base not in (checked.Base.NUMBER, checked.Base.UNSIGNED, checked.Base.FLOAT):
        return f"bound it by a comparison, as in `x < 1000`, or write `.limitsize {relation.name}(n=…)`"
    columns = [(attribute.name, attribute.type_name) for attribute in relation.attributes]
    return f"bound it by a comparison, or keep the least by `{keeping_best(relation.name, columns, place, 'min')}`"


def _warning(rule: checked.Rule, grown: checked.Expression, bound: str) -> Diagnostic:
    return finding(
        "E0414", grown.span, severity="warning", source=rule.source, relation=rule.head.relation, advice=bound
    )
