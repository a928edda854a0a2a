"""Rules that may grow without end: recursion that computes ever new values, and nothing that bounds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from elastalog.analysis.checked_variables import names_of
from elastalog.analysis.program import Apply, Atom, CheckedProgram, Comparison, Expression, Rule, Variable
from elastalog.analysis.structures import is_constructor
from elastalog.analysis.subsumptions import MARK
from elastalog.diagnostics.diagnostic import Diagnostic, Label

_GROWING: Final = frozenset(("+", "-", "*", "^", "cat", "replace", "add_days", "add_seconds"))
_ORDERS: Final = frozenset(("<", "<=", ">", ">="))


def warnings_of_growth(program: CheckedProgram) -> list[Diagnostic]:
    """A warning for every rule that may grow without end."""
    judged = {rule.head.relation.removesuffix(MARK) for rule in program.subsumptions}
    judged |= {
        name
        for name, relation in program.relations.items()
        if relation.choices or any(directive.kind == "limitsize" for directive in relation.directives)
    }
    found = []
    for stratum in program.strata:
        if judged.isdisjoint(stratum.relations):
            found += [_warning(rule, grown) for rule, grown in growing(stratum.rules, stratum.relations)]
    return found


def growing(rules: Iterable[Rule], members: Collection[str]) -> Iterator[tuple[Rule, Expression]]:
    """The rules of a stratum whose head has a value that is computed from one of the recursion and that nothing bounds:
    no comparison by order, and no atom of a relation outside the recursion. Each with what it computes."""
    for rule in rules:
        if not rule.is_recursive:
            continue
        atoms = [literal for literal in rule.body if type(literal) is Atom]
        recursive = {name for atom in atoms if atom.relation in members for name in names_of(*atom.arguments)}
        bounds = {name for atom in atoms if atom.relation not in members for name in names_of(*atom.arguments)}
        given = recursive | bounds
        computed: dict[str, Expression] = {}
        for literal in rule.body:
            if type(literal) is Comparison and literal.operator in _ORDERS:
                bounds |= set(names_of(literal.left, literal.right))
            elif type(literal) is Comparison and literal.operator == "=":
                for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if type(side) is Variable and type(other) in (Apply, Variable) and side.name not in given:
                        computed[side.name] = other
        for argument in rule.head.arguments:
            grown = computed.get(argument.name) if type(argument) is Variable else argument
            if type(grown) is Apply and _grows(grown, argument, dict(computed), recursive, bounds):
                yield rule, argument if type(argument) is Apply else grown
                break


def _grows(
    grown: Apply,
    argument: object,
    computed: dict[str, Expression],
    recursive: Collection[str],
    bounds: Collection[str],
) -> bool:
    """Whether a value grows with those of the recursion."""
    if type(argument) is Variable and argument.name in bounds:
        return False
    pending: list[Expression] = [grown]
    makes_new, uses = False, False
    while pending:
        expression = pending.pop()
        if type(expression) is Variable:
            uses = uses or (expression.name in recursive and expression.name not in bounds)
            pending += [computed.pop(expression.name)] if expression.name in computed else []
        elif type(expression) is Apply:
            functor = expression.functor
            makes_new = makes_new or functor in _GROWING or functor[0] == "@" or is_constructor(functor)
            pending += expression.arguments
    return makes_new and uses


def _warning(rule: Rule, grown: Expression) -> Diagnostic:
    name = rule.head.relation
    return Diagnostic(
        "E0414",
        f"relation `{name}` may grow without end",
        (Label(grown.span, "a new value in every round, which nothing bounds"),),
        ("the limits of time and memory end such an evaluation",),
        "bound it by a comparison, as in `x < 1000`, keep the best of each by a subsumption, or write "
        f"`.limitsize {name}(n=…)`",
        "warning",
        rule.source,
    )
