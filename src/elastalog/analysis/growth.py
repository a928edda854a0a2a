"""Rules that may grow without end: recursion that keeps computing new values that nothing bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from elastalog.analysis import program as checked
from elastalog.analysis.draft import is_constructor
from elastalog.analysis.listing import show_expression
from elastalog.analysis.subsumptions import MARK, keeping_best
from elastalog.diagnostics.diagnostic import Diagnostic, finding

_GROWING: Final = frozenset(("+", "-", "*", "^", "cat", "replace", "add_days", "add_seconds"))
_CYCLIC: Final = frozenset(("%", "band"))
"""Functors with a bounded number of values, whatever these are computed from."""
_ORDERS: Final = frozenset(("<", "<=", ">", ">="))


class Growth(NamedTuple):
    """A rule that may grow without end, the expression that computes its new values, and what would bound it. It is not
    likely if it takes unusual facts, such as negative numbers added to what a `min` column keeps."""

    rule: checked.Rule
    value: checked.Apply
    advice: str
    is_likely: bool


def warnings_of_growth(program: checked.CheckedProgram) -> list[Diagnostic]:
    """A warning for every rule that is likely to grow without end. With subsumption, those are rules that increase a
    greatest value, which a cycle of facts can do for ever."""
    found = []
    for stratum in program.strata:
        own = [program.relations[name] for name in stratum.relations]
        if not any(r.choices or any(d.kind == "limitsize" for d in r.directives) for r in own):
            for rule, value, advice, is_likely in growing(program, stratum.rules):
                if is_likely:
                    values = {"relation": rule.head.relation, "advice": advice}
                    found.append(finding("E0414", value.span, severity="warning", source=rule.source, **values))
    return found


def growing(program: checked.CheckedProgram, rules: Sequence[checked.Rule]) -> Iterator[Growth]:
    """The rules of a stratum whose head has a value that is computed from one of the recursion and that nothing bounds:
    no comparison from the side to which it grows, no atom of a relation outside the recursion, and no column that
    counts steps up to a bound, or has a text that becomes longer up to one."""
    kept = _kept(program)
    own = {rule.head.relation for rule in rules}
    read = [_Bounds(rule, own) for rule in rules if rule.is_recursive]
    for bounds in read:
        relation = bounds.rule.head.relation
        is_judged, (column, best) = relation in kept, kept.get(relation, (-1, 0))
        for place, argument in enumerate(bounds.rule.head.arguments):
            value = bounds.value_of(argument)
            direction = best if place == column else 0
            if type(value) is not checked.Apply or not bounds.allow(value, argument, direction):
                continue
            if not (len(own) == 1 and _is_counted(bounds, read)):
                advice = bounds.advice(program.relations[relation], place, value, is_judged, direction or _step(value))
                is_likely = not is_judged or (direction > 0 and value.functor != "-")
                yield Growth(bounds.rule, value, advice, is_likely)
            break


def _kept(program: checked.CheckedProgram) -> Mapping[str, tuple[int, int]]:
    """For each relation with subsumption, the column whose greatest (1) or least (-1) value is kept, if there is
    one."""
    found: dict[str, tuple[int, int]] = {}
    for rule in program.subsumptions:
        relation = rule.head.relation.removesuffix(MARK)
        found.setdefault(relation, (-1, 0))
        names = [next(checked.names_of(argument), None) for argument in rule.head.arguments]
        ends = list(zip(names, names[len(names) // 2 :], strict=False))
        for literal in rule.body:
            if type(literal) is checked.Comparison and literal.operator in ("<", ">"):
                sides = [next(checked.names_of(side), None) for side in (literal.left, literal.right)]
                less, greater = sides if literal.operator == "<" else sides[::-1]
                for pair, best in (((less, greater), 1), ((greater, less), -1)):
                    if pair in ends:
                        found[relation] = ends.index(pair), best
    return found


class _Bounds:
    """What bounds the variables of a recursive rule from below and above, and what computes the arguments of its
    head."""

    def __init__(self, rule: checked.Rule, own: set[str]) -> None:
        self.rule = rule
        atoms = [literal for literal in rule.body if type(literal) is checked.Atom]
        self.atoms = [atom for atom in atoms if atom.relation in own]
        self.recursive = {name for atom in self.atoms for name in checked.names_of(*atom.arguments)}
        outside = {name for atom in atoms if atom.relation not in own for name in checked.names_of(*atom.arguments)}
        self.below, self.above = set(outside), set(outside)
        self.added: set[str] = set()
        """Variables that are not below 0."""
        self.computed: dict[str, checked.Expression] = {}
        self.avoided: set[tuple[str, str]] = set()
        """Variables of atoms outside the recursion, each with one whose text must not contain it."""
        for literal in rule.body:
            if type(literal) is checked.Comparison and literal.operator in _ORDERS:
                sign = 1 if literal.operator[0] == "<" else -1
                less, greater = (literal.left, literal.right)[::sign]
                least = less.value if type(less) is checked.Constant else None
                if isinstance(least, int | float) and least >= 0 and type(greater) is checked.Variable:
                    self.added.add(greater.name)
                for name, direction in (*_signed(literal.left, sign), *_signed(literal.right, -sign)):
                    self.above.update([name] * (direction >= 0))
                    self.below.update([name] * (direction <= 0))
            elif type(literal) is checked.Comparison and literal.operator == "=":
                for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if type(side) is checked.Variable and type(other) in (checked.Apply, checked.Variable):
                        self.computed[side.name] = other
            elif type(literal) is checked.Comparison and literal.operator == "not contains":
                parts = outside.intersection(checked.names_of(literal.left))
                self.avoided.update(product(parts, checked.names_of(literal.right)))
        for name in self.recursive | outside:
            self.computed.pop(name, None)

    def value_of(self, argument: checked.Expression | checked.Wildcard) -> checked.Expression | checked.Wildcard:
        """The expression that computes an argument of the head; the argument itself if nothing computes it."""
        return self.computed.get(argument.name, argument) if type(argument) is checked.Variable else argument

    def towards(self, direction: int) -> set[str]:
        """The variables with a bound above (1), below (-1), or either."""
        return self.above if direction > 0 else self.below if direction < 0 else self.above | self.below

    def adds(self, value: checked.Apply) -> bool:
        """Whether a value is the sum of a value of the recursion and something that is never negative."""
        further = [term for term in value.arguments if not self.recursive.issuperset(checked.names_of(term))]
        added = {one.name if type(one) is checked.Variable else "" for one in further}
        return value.functor == "+" and len(further) == 1 and added <= self.added

    def allow(self, value: checked.Apply, argument: checked.Expression | checked.Wildcard, direction: int) -> bool:
        """Whether a value may grow with those of the recursion, in the given direction if that is not 0."""
        if direction == -_step(value) != 0 or (direction < 0 and self.adds(value)):
            return False
        bounds = self.towards(direction or _step(value))
        if type(argument) is checked.Variable and argument.name in bounds:
            return False
        computed = dict(self.computed)
        pending: list[checked.Expression] = [value]
        makes_new, uses = False, False
        while pending:
            expression = pending.pop()
            if type(expression) is checked.Variable:
                uses = uses or (expression.name in self.recursive and expression.name not in bounds)
                pending += [computed.pop(expression.name)] if expression.name in computed else []
            elif type(expression) is checked.Apply and expression.functor not in _CYCLIC:
                functor = expression.functor
                makes_new = makes_new or functor in _GROWING or functor[0] == "@" or is_constructor(functor)
                pending += expression.arguments
        return makes_new and uses

    def advice(
        self, relation: checked.Relation, place: int, grown: checked.Apply, is_judged: bool, direction: int
    ) -> str:
        """What bounds the rule: a comparison, or a column that keeps the least value for all others of a fact, unless
        the relation `is_judged` by a subsumption already: then that what is added makes no value better."""
        name = next((name for name in checked.names_of(grown) if name in self.recursive), "x")
        bounded = f"strlen({name})" if grown.base is checked.Base.SYMBOL else name
        compare = f"bound it by a comparison, as in `{bounded} {'> 0' if direction < 0 else '< 1000'}`"
        if is_judged:
            added = [term for term in grown.arguments if self.recursive.isdisjoint(checked.names_of(term))]
            if direction < 0 and grown.functor == "+" and len(added) == 1 and any(checked.names_of(*added)):
                compare = f"add nothing below 0, as by `{show_expression(added[0])} >= 0`"
            return f"around a cycle that improves the value there is no best one: {compare}"
        if relation.arity == 1 or grown.base not in (checked.Base.NUMBER, checked.Base.UNSIGNED, checked.Base.FLOAT):
            return f"{compare}, or write `.limitsize {relation.name}(n=…)`"
        columns = [(attribute.name, attribute.type_name) for attribute in relation.attributes]
        least = keeping_best(relation.name, columns, place, "max" if direction < 0 else "min")
        return f"{compare}, or keep the {'greatest' if direction < 0 else 'least'} by `{least}`"

    def step(self, place: int) -> tuple[int, bool] | None:
        """Whether a column of the head is that of all recursive facts plus a constant or with more text (1), minus one
        (-1), or unchanged (0), and whether it is bounded; None in all other cases."""
        argument = self.rule.head.arguments[place]
        value = self.value_of(argument)
        step = _step(value)
        names = set(checked.names_of(value))
        read = {
            term.name if type(term) is checked.Variable else None for term in (a.arguments[place] for a in self.atoms)
        }
        if type(value) is checked.Apply and value.functor == "cat" and len(read) == 1:
            terms = [*_joined(value)]
            joined = {term.name for term in terms if type(term) is checked.Variable}
            if not read <= joined:
                return None
            if not self.avoided.isdisjoint(product(joined, read)):
                return 1, True
            is_longer = any(type(term) is checked.Constant and term.value for term in terms)
            named = {argument.name} if type(argument) is checked.Variable else set()
            return (1, not self.above.isdisjoint(read | named)) if is_longer else None
        if read != names or not (step or type(value) is checked.Variable):
            return None
        return step, not self.towards(step).isdisjoint({*names, *checked.names_of(argument)})


def _signed(expression: checked.Expression, sign: int) -> Iterator[tuple[str, int]]:
    """The variables of an expression, each with 1 if the expression grows with it, -1 if it falls, and 0 if that is
    unknown."""
    if type(expression) is checked.Variable:
        yield expression.name, sign
    elif type(expression) is checked.Apply:
        signs = {"+": (sign, sign), "-": (sign, -sign), "neg": (-sign,)}.get(expression.functor, ())
        for place, argument in enumerate(expression.arguments):
            yield from _signed(argument, signs[place] if signs else 0)


def _joined(value: checked.Expression) -> Iterator[checked.Expression]:
    """The texts that a text is joined of."""
    if type(value) is checked.Apply and value.functor == "cat":
        for argument in value.arguments:
            yield from _joined(argument)
    else:
        yield value


def _step(value: checked.Expression | checked.Wildcard) -> int:
    """1 for a variable plus a constant, -1 for a variable minus one, also in forms such as `5 - (4 - n)`; 0 for
    anything else."""
    if isinstance(value, checked.Wildcard) or len(set(checked.names_of(value))) != 1:
        return 0
    times, amount = 0, 0.0
    for sign, term in checked.terms_of_sum(value):
        match term:
            case checked.Variable():
                times += sign
            case checked.Constant(int() | float() as number):
                amount += sign * number
            case _:
                return 0
    return (amount > 0) - (amount < 0) if times == 1 else 0


def _is_counted(bounds: _Bounds, every: Sequence[_Bounds]) -> bool:
    """Whether some column counts, up to a bound, how often a rule was used: the other rules of the recursion count in
    the same direction or pass the value on."""
    for place in range(len(bounds.rule.head.arguments)):
        own = bounds.step(place)
        if own is not None and own[0] and own[1]:
            others = [each.step(place) for each in every]
            if all(other is not None and other[0] in (0, own[0]) for other in others):
                return True
    return False
