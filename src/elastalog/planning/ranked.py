"""Strata in which every key has one best value, and every rule hands the best on: shortest paths, least labels.

The facts of such a stratum are nodes, each with a value, and its rules are *links*: a link from a node to another makes
`max(value, floor) + weight` of a value, and never something better than it has read. So nodes settle in the order of
their values, each once, and what an update touches is what its links lead to. What a link is made of does not depend
on values: it is a fact of a relation below, or of a hidden one that a rule with a longer body gets.

A column that every rule only hands on, and that nothing else mentions, is a *context*: links lead from node to node
within each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.analysis.subsumptions import MARK
from elastalog.late import dataclass
from elastalog.planning.best_of_key import Comparison, comparison_of
from elastalog.planning.logical import GUARD, Clause, Goal, Scan, StoredRelation, Test
from elastalog.planning.variables import grounded, names_in

Part: TypeAlias = int | Constant
"""A column of the relation that links are made of, or a value."""


@dataclass(frozen=True, slots=True)
class Link:
    """Facts of `made_of` are links from `source` to `target`, or give the value to the target where there is no source.
    None: of every node of the source a link, whose parts are columns of its key; or one value, that holds always.
    `weights`: what is added, with signs; `floors`: what the value is at least, or at most."""

    made_of: str | None
    source: str | None
    source_key: tuple[Part, ...]
    target: str
    target_key: tuple[Part, ...]
    weights: tuple[tuple[int, Part], ...]
    floors: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """`columns`: by relation the column of the value; `contexts` those that are only handed on."""

    is_least: bool
    base: Base
    columns: Mapping[str, int]
    contexts: tuple[int, ...]
    links: tuple[Link, ...]


class NotRanked(Exception):
    """Why a stratum is not evaluated in the order of values."""


_Value: TypeAlias = str | Expression

Make: TypeAlias = Callable[[Clause, Sequence[str], tuple[Goal, ...]], str]
"""Makes the hidden relation of some variables of a clause, for which goals hold."""


def ranked_of(
    relations: Sequence[str],
    clauses: Sequence[Clause],
    dominance: Sequence[Clause],
    stored: Mapping[str, StoredRelation],
    make: Make,
) -> Ranked:
    """How a stratum is evaluated in the order of values. Raises NotRanked if it is not."""
    columns, is_least, base = _comparisons(relations, dominance, stored)
    if any(stored[name].choices for name in relations):
        raise NotRanked("it has a choice domain")
    if any(clause.wraps for clause in clauses):
        raise NotRanked("its arithmetic wraps")
    recursive = [clause for clause in clauses if clause.is_recursive]
    contexts = _contexts(relations, recursive, columns)
    reader = _Reader(columns, contexts, is_least, make)
    parts = [(clause, reader.parts(clause)) for clause in clauses]  # all, before anything is made
    links = tuple(reader.link(*each) for each in parts)
    if reader.is_changing:
        raise NotRanked("its rules are changing")
    return Ranked(is_least, base, columns, contexts, links)


def _comparisons(
    relations: Sequence[str], dominance: Sequence[Clause], stored: Mapping[str, StoredRelation]
) -> tuple[dict[str, int], bool, Base]:
    found: dict[str, Comparison] = {}
    for clause in dominance:
        name, comparison = clause.head.removesuffix(MARK), comparison_of(clause, (Base.NUMBER, Base.UNSIGNED))
        if comparison is None or name in found:
            raise NotRanked(f"what stays of `{name}` is more than the least or greatest number of a key")
        found[name] = comparison
    for name in relations:
        if name not in found:
            raise NotRanked(f"`{name}` has no least or greatest value")
    if len({comparison.is_least for comparison in found.values()}) > 1:
        raise NotRanked("here the least, there the greatest value stays")
    columns = {name: found[name].column for name in relations}
    bases = {stored[name].bases[column] for name, column in columns.items()}
    if len(bases) > 1:
        raise NotRanked("its values are of several types")
    return columns, next(iter(found.values())).is_least, bases.pop()


def _contexts(relations: Sequence[str], recursive: Sequence[Clause], columns: Mapping[str, int]) -> tuple[int, ...]:
    if len(relations) > 1 or not recursive:
        return ()
    (column,) = columns.values()
    found = set(range(len(recursive[0].head_terms))) - {column}
    for clause in recursive:
        if len(clause.recursive_goals) == 1:
            read = clause.goals[clause.recursive_goals[0]]
            assert isinstance(read, Scan)
            names = [name for goal in clause.goals for name in names_in(goal)]
            names += [term for term in clause.head_terms if isinstance(term, str)]
            found = {
                place
                for place in found
                if (name := read.terms[place]) == clause.head_terms[place]
                and isinstance(name, str)
                and names.count(name) == 2
            }
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a clause is made of: what it reads of its stratum, its other goals, and what becomes of the value."""

    read: Scan | None
    rest: tuple[Goal, ...]
    weights: tuple[tuple[int, _Value], ...]
    floors: tuple[_Value, ...]


class _Reader:
    def __init__(self, columns: Mapping[str, int], contexts: tuple[int, ...], is_least: bool, make: Make) -> None:
        self._columns = columns
        self._contexts = contexts
        self._bound = "max" if is_least else "min"
        self._make = make
        self.is_changing = False
        """Whether a link holds only while its rule does, and nothing says so of the facts that it is made of."""

    def parts(self, clause: Clause) -> _Parts:
        """What a clause is made of. Raises NotRanked if it is not one of a ranked stratum."""
        given = clause.head_terms[self._columns[clause.head]]
        if not clause.is_recursive:
            return _Parts(None, clause.goals, ((1, given),), ())
        if len(clause.recursive_goals) > 1:
            raise NotRanked(f"{_rule(clause)} reads two facts of its own recursion")
        (place,) = clause.recursive_goals
        read = clause.goals[place]
        assert isinstance(read, Scan)
        number = read.terms[self._columns[read.relation]]
        rest = (*clause.goals[:place], *clause.goals[place + 1 :])
        if not isinstance(number, str) or not isinstance(given, str) or self._key(read).count(number):
            raise NotRanked(f"{_rule(clause)} asks for certain values")
        uses = [name for goal in rest for name in names_in(goal)]
        key = [term for i, term in enumerate(clause.head_terms) if i != self._columns[clause.head]]
        if number in key or given in key:
            raise NotRanked(f"{_rule(clause)} uses the value elsewhere")
        if number == given:
            if number in uses:
                raise NotRanked(f"{_rule(clause)} tests the value")
            return self._bound_by_rest(clause, _Parts(read, rest, (), ()))
        equations = [goal for goal in rest if isinstance(goal, Test) and number in names_in(goal)]
        if len(equations) != 1 or uses.count(number) != 1 or uses.count(given) != 1:
            raise NotRanked(f"{_rule(clause)} tests the value, or uses it twice")
        expression = _solved(equations[0], given)
        if expression is None:
            raise NotRanked(f"{_rule(clause)} tests the value")
        rest = tuple(goal for goal in rest if goal is not equations[0])
        if isinstance(expression, Apply) and expression.functor == self._bound:
            others = tuple(part for part in expression.arguments if not _is_variable(part, number))
            if len(others) == len(expression.arguments) - 1:
                return self._bound_by_rest(clause, _Parts(read, rest, (), others))
        terms = list(_terms(expression, 1))
        own = [sign for sign, term in terms if _is_variable(term, number)]
        others_in_sum = tuple((sign, term) for sign, term in terms if not _is_variable(term, number))
        if own != [1] or any(number in _names(term) for _, term in others_in_sum):
            raise NotRanked(f"{_rule(clause)} makes something else of the value than a sum or a bound")
        known = [
            sign * term.value
            for sign, term in others_in_sum
            if isinstance(term, Constant) and isinstance(term.value, int)
        ]
        if len(known) == len(others_in_sum) and _is_better(sum(known), self._bound == "max"):
            raise NotRanked(f"{_rule(clause)} makes values better than those it reads")
        return self._bound_by_rest(clause, _Parts(read, rest, others_in_sum, ()))

    def _bound_by_rest(self, clause: Clause, parts: _Parts) -> _Parts:
        """The parts, if the rest of the body gives the key that is read; or there is none, and the key gives all."""
        assert parts.read is not None
        needed = {name for name in self._key(parts.read) if isinstance(name, str)}
        if None in self._key(parts.read):
            raise NotRanked(f"{_rule(clause)} does not say of which key it reads the value")
        values = [*(value for _, value in parts.weights), *parts.floors]
        if any(not _is_guard(goal) for goal in parts.rest):
            if not needed <= grounded(parts.rest):
                raise NotRanked(f"{_rule(clause)} reads a key that nothing else gives")
        elif not all(isinstance(value, Constant) for value in values):
            raise NotRanked(f"{_rule(clause)} computes with the key")
        return parts

    def _key(self, scan: Scan) -> tuple[str | Constant | None, ...]:
        left_out = {self._columns[scan.relation], *self._contexts}
        return tuple(term for place, term in enumerate(scan.terms) if place not in left_out)

    def link(self, clause: Clause, parts: _Parts) -> Link:
        """The link that a clause is, a hidden relation made for it if need be."""
        read = parts.read
        left_out = {self._columns[clause.head], *(self._contexts if read is not None else ())}
        head = tuple(term for place, term in enumerate(clause.head_terms) if place not in left_out)
        source = () if read is None else self._key(read)
        values = [*(term for _, term in parts.weights), *parts.floors]
        rest = parts.rest
        place_of: Mapping[str, int]
        made_of: str | None = None
        guards = tuple(goal for goal in rest if _is_guard(goal))
        plain = tuple(goal for goal in rest if not _is_guard(goal))
        is_plain = not any(isinstance(value, Apply) for value in values)
        direct = plain[0] if len(plain) == 1 and is_plain else None
        if not plain and is_plain and not guards:
            place_of = {} if read is None else {t: i for i, t in enumerate(source) if isinstance(t, str)}
        elif isinstance(direct, Scan) and _are_distinct(direct.terms):
            self.is_changing = self.is_changing or bool(guards)
            made_of, place_of = direct.relation, {t: i for i, t in enumerate(direct.terms) if isinstance(t, str)}
        else:
            tests: list[Goal] = []
            for number, value in enumerate(values):
                if isinstance(value, Apply):
                    variable = Variable(f"@value{number}", value.base, value.span)
                    tests.append(Test("=", value.base, variable, value))
                    values[number] = variable
            wanted = [*source, *head, *(v.name if isinstance(v, Variable) else v for v in values)]
            names = list(dict.fromkeys(term for term in wanted if isinstance(term, str)))
            made_of = self._make(clause, names, (*rest, *tests))
            place_of = {name: place for place, name in enumerate(names)}

        def part(term: _Value | None) -> Part:
            name = term.name if isinstance(term, Variable) else term
            assert isinstance(name, str | Constant)
            return place_of[name] if isinstance(name, str) else name

        weights = tuple((sign, part(value)) for (sign, _), value in zip(parts.weights, values, strict=False))
        return Link(
            made_of,
            None if read is None else read.relation,
            tuple(map(part, source)),
            clause.head,
            tuple(map(part, head)),
            weights,
            tuple(map(part, values[len(parts.weights) :])),
        )


def _rule(clause: Clause) -> str:
    return "what is given" if clause.rule is None else f"rule {clause.rule.number}"


def _is_guard(goal: Goal) -> bool:
    return isinstance(goal, Scan) and goal.relation.startswith(GUARD)


def _is_better(weight: int, is_least: bool) -> bool:
    return weight < 0 if is_least else weight > 0


def _are_distinct(terms: Iterable[object]) -> bool:
    names = [term for term in terms if term is not None]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_variable(expression: Expression, name: str) -> bool:
    return isinstance(expression, Variable) and expression.name == name


def _names(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.name
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from _names(argument)


def _solved(test: Test, name: str) -> Expression | None:
    """What an equation says that a variable is."""
    if test.operator == "=":
        if _is_variable(test.left, name):
            return test.right
        if _is_variable(test.right, name):
            return test.left
    return None


def _terms(expression: Expression, sign: int) -> Iterator[tuple[int, Expression]]:
    """The terms of a sum, with their signs."""
    if isinstance(expression, Apply) and expression.functor in ("+", "-") and len(expression.arguments) == 2:
        left, right = expression.arguments
        yield from _terms(left, sign)
        yield from _terms(right, sign if expression.functor == "+" else -sign)
    else:
        yield sign, expression
