"""Strata in which every key has one best value, and every rule hands the best on: shortest paths, least labels.

The facts of such a stratum are nodes, each with a value, and its rules are *links*: a link from a node to another makes
`max(value, floor) + weight` of a value, one from two nodes the same of their sum or the worse one, and never something
better than it has read. So nodes settle in the order of their values, each once, and what an update touches is what its
links lead to. What a link is made of does not depend on values: it is a fact of a relation below, or of a hidden one
that a rule with a longer body gets.

A column that every rule only hands on, and that nothing else mentions, is a *context*: links lead from node to node
within each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable, terms_of_sum
from elastalog.analysis.subsumptions import MARK
from elastalog.late import dataclass
from elastalog.planning.goals import grounded, names_in
from elastalog.planning.logical import GUARD, Clause, Goal, Link, Part, Ranked, Scan, StoredRelation, Test
from elastalog.planning.solving import solve_equation


class NotRanked(Exception):
    """A stratum cannot be evaluated in the order of values; the message says why."""


_Value: TypeAlias = str | Expression

_ORDERED = (Base.NUMBER, Base.UNSIGNED, Base.FLOAT, Base.SYMBOL)

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
    reader = _Reader(columns, contexts, is_least, base)
    parts = [(clause, reader.parts(clause)) for clause in clauses]  # all, before anything is made
    if any(each.guards and each.made_of is not None for _, each in parts):
        # Such a link would hold only while its rule does, and the facts that it is made of do not say so.
        raise NotRanked("its rules are changing")
    return Ranked(is_least, base, columns, contexts, tuple(reader.link(*each, make) for each in parts))


def _comparisons(
    relations: Sequence[str], dominance: Sequence[Clause], stored: Mapping[str, StoredRelation]
) -> tuple[dict[str, int], bool, Base]:
    found: dict[str, Comparison] = {}
    for clause in dominance:
        name, comparison = clause.head.removesuffix(MARK), comparison_of(clause, _ORDERED)
        if comparison is None and name in found and all(_is_of_itself(g) for g in clause.goals if isinstance(g, Test)):
            continue  # NaN, which a column of floats drops; where there is one, values have no order
        if comparison is None or name in found:
            raise NotRanked(f"what stays of `{name}` is more than the least or greatest value of a key")
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
    if len(relations) > 1 or not recursive or any(len(clause.recursive_goals) > 1 for clause in recursive):
        return ()
    (column,) = columns.values()
    found = set(range(len(recursive[0].head_terms))) - {column}
    for clause in recursive:
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

    reads: tuple[Scan, ...]
    rest: tuple[Goal, ...]
    weights: tuple[tuple[int, _Value], ...] = ()
    floors: tuple[_Value, ...] = ()
    is_sum: bool = False

    @property
    def values(self) -> list[_Value]:
        """What is added to the value, and what bounds it."""
        return [*(value for _, value in self.weights), *self.floors]

    @property
    def guards(self) -> list[Goal]:
        """The goals that say whether the rule is in force."""
        return [goal for goal in self.rest if _is_guard(goal)]

    @property
    def made_of(self) -> Scan | None:
        """The only other goal, if its facts can serve as links without computing anything."""
        plain = [goal for goal in self.rest if not _is_guard(goal)]
        if len(plain) != 1 or any(isinstance(value, Apply) for value in self.values):
            return None
        (goal,) = plain
        return goal if isinstance(goal, Scan) and _are_names([t for t in goal.terms if t is not None]) else None


@dataclass(frozen=True, slots=True)
class _Reader:
    _columns: Mapping[str, int]
    _contexts: tuple[int, ...]
    _is_least: bool
    _base: Base

    def parts(self, clause: Clause) -> _Parts:
        """What a clause is made of. Raises NotRanked if it is not one of a ranked stratum."""
        given = clause.head_terms[self._columns[clause.head]]
        if not clause.is_recursive:
            return _Parts((), clause.goals, ((1, given),))
        if len(clause.recursive_goals) > 2:
            raise NotRanked(f"{_rule(clause)} reads more than two facts of its own recursion")
        reads = [goal for i, goal in enumerate(clause.goals) if i in clause.recursive_goals and isinstance(goal, Scan)]
        numbers = [read.terms[self._columns[read.relation]] for read in reads]
        rest = tuple(goal for i, goal in enumerate(clause.goals) if i not in clause.recursive_goals)
        keys = [term for read in reads for term in self._key(read)]
        if not isinstance(given, str) or not _are_names(numbers) or any(number in keys for number in numbers):
            raise NotRanked(f"{_rule(clause)} asks for certain values")
        key = [term for i, term in enumerate(clause.head_terms) if i != self._columns[clause.head]]
        if given in key or any(number in key for number in numbers):
            raise NotRanked(f"{_rule(clause)} uses the value elsewhere")
        if numbers != [given]:
            found = self._computed(clause, tuple(reads), rest, [str(number) for number in numbers], given)
        elif any(given in names_in(goal) for goal in rest):
            raise NotRanked(f"{_rule(clause)} tests the value")
        else:
            found = _Parts(tuple(reads), rest)
        self._check_key(clause, found)
        return found

    def _computed(
        self, clause: Clause, reads: tuple[Scan, ...], rest: tuple[Goal, ...], numbers: list[str], given: str
    ) -> _Parts:
        """The parts of a clause that computes its value from what it reads, as a sum or a bound."""
        uses = [name for goal in rest for name in names_in(goal)]
        equations = [goal for goal in rest if isinstance(goal, Test) and given in names_in(goal)]
        if len(equations) != 1 or any(uses.count(name) != 1 for name in (*numbers, given)):
            raise NotRanked(f"{_rule(clause)} tests the value, or uses it twice")
        solution = solve_equation(equations[0], set(names_in(equations[0])) - {given}, wraps=False)
        if solution is None or not solution.is_exact:
            raise NotRanked(f"{_rule(clause)} tests the value")
        expression = solution.expression
        rest = tuple(goal for goal in rest if goal is not equations[0])
        if isinstance(expression, Apply) and expression.functor == ("max" if self._is_least else "min"):
            floors = tuple(part for part in expression.arguments if not _is_one_of(part, numbers))
            if len(floors) == len(expression.arguments) - len(numbers):
                return _Parts(reads, rest, floors=floors)
        terms = list(terms_of_sum(expression))
        weights = tuple((sign, term) for sign, term in terms if not _is_one_of(term, numbers))
        is_sum = sum(sign for sign, term in terms if _is_one_of(term, numbers)) == len(numbers)
        if not is_sum or self._base is Base.SYMBOL:
            raise NotRanked(f"{_rule(clause)} makes something else of the value than a sum or a bound")
        if self._base is Base.FLOAT and len(terms) > 2:
            raise NotRanked(f"{_rule(clause)} adds more than two floats, whose sum depends on their order")
        known = [
            sign * term.value
            for sign, term in weights
            if isinstance(term, Constant) and isinstance(term.value, int | float)
        ]
        if len(known) == len(weights) and (sum(known) < 0 if self._is_least else sum(known) > 0):
            raise NotRanked(f"{_rule(clause)} makes values better than those it reads")
        return _Parts(reads, rest, weights, is_sum=len(numbers) > 1)

    def _check_key(self, clause: Clause, parts: _Parts) -> None:
        """Raises NotRanked unless the rest of the body gives the keys that are read, or there is no rest and the key
        gives everything."""
        given = [(term, read.relation) for read in parts.reads for term in self._key(read)]
        if any(term is None for term, _ in given):
            raise NotRanked(f"{_rule(clause)} does not say of which key it reads the value")
        if len(parts.guards) < len(parts.rest) or len(parts.reads) > 1:
            bound = grounded(parts.rest)
            lacking = {term: relation for term, relation in given if isinstance(term, str) and term not in bound}
            tested = [name for goal in parts.rest for name in names_in(goal) if name in lacking]
            if lacking:
                name, use = (tested[0], "tested") if tested else (next(iter(lacking)), "read")
                raise NotRanked(f"{_rule(clause)}: `{name}` is {use}, and only `{lacking[name]}` gives it")
        elif not all(isinstance(value, Constant) for value in parts.values):
            raise NotRanked(f"{_rule(clause)} computes with the key")

    def _key(self, scan: Scan) -> tuple[str | Constant | None, ...]:
        left_out = {self._columns[scan.relation], *self._contexts}
        return tuple(term for place, term in enumerate(scan.terms) if place not in left_out)

    def link(self, clause: Clause, parts: _Parts, make: Make) -> Link:
        """The link that a clause stands for; a hidden relation is made for it if necessary."""
        values, direct = parts.values, parts.made_of
        left_out = {self._columns[clause.head], *(self._contexts if parts.reads else ())}
        head = tuple(term for place, term in enumerate(clause.head_terms) if place not in left_out)
        source = tuple(term for read in parts.reads for term in self._key(read))
        made_of: str | None = None
        columns: Sequence[object] = source
        if direct is not None:
            made_of, columns = direct.relation, direct.terms
        elif parts.rest or any(isinstance(value, Apply) for value in values):
            tests: list[Goal] = []
            for number, value in enumerate(values):
                if isinstance(value, Apply):
                    variable = Variable(f"@value{number}", value.base, value.span)
                    tests.append(Test("=", value.base, variable, value, value.span))
                    values[number] = variable
            wanted = [*source, *head, *(v.name if isinstance(v, Variable) else v for v in values)]
            names = list(dict.fromkeys(term for term in wanted if isinstance(term, str)))
            made_of, columns = make(clause, names, (*parts.rest, *tests)), names
        place_of = {name: place for place, name in enumerate(columns) if isinstance(name, str)}

        def part(term: _Value | None) -> Part:
            name = term.name if isinstance(term, Variable) else term
            assert isinstance(name, str | Constant)
            return place_of[name] if isinstance(name, str) else name

        signs = [sign for sign, _ in parts.weights]
        return Link(
            made_of,
            tuple((read.relation, tuple(map(part, self._key(read)))) for read in parts.reads),
            clause.head,
            tuple(map(part, head)),
            tuple((sign, part(value)) for sign, value in zip(signs, values, strict=False)),
            tuple(map(part, values[len(signs) :])),
            parts.is_sum,
        )


def _rule(clause: Clause) -> str:
    return "what is given" if clause.rule is None else f"rule {clause.rule.number}"


def _is_guard(goal: Goal) -> bool:
    return isinstance(goal, Scan) and goal.relation.startswith(GUARD)


def _are_names(terms: Sequence[object]) -> bool:
    return all(isinstance(term, str) for term in terms) and len(set(terms)) == len(terms)


def _is_one_of(expression: _Value, names: Sequence[str]) -> bool:
    return isinstance(expression, Variable) and expression.name in names


def _is_of_itself(test: Test) -> bool:
    """Whether a test compares a variable with itself, which asks whether it is a number."""
    return isinstance(test.left, Variable) and isinstance(test.right, Variable) and test.left.name == test.right.name


# --- what a subsumption keeps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """The column whose number decides, and whether the least is the best."""

    column: int
    is_least: bool


def comparison_of(clause: Clause, bases: Collection[Base] = (Base.NUMBER,)) -> Comparison | None:
    """What a clause compares, if it has the usual form: two facts that differ in one number."""
    tests = [goal for goal in clause.goals if isinstance(goal, Test)]
    if len(tests) != 1 or len(clause.scans) != 2 or len(clause.goals) != 3:
        return None
    (test,), (dominated, dominating) = tests, (scan.terms for scan in clause.scans)
    columns = [i for i, pair in enumerate(zip(dominated, dominating, strict=True)) if pair[0] != pair[1]]
    names = [*dominated, *(dominating[i] for i in columns)]
    sides = [side.name if isinstance(side, Variable) else None for side in (test.left, test.right)]
    if len(columns) != 1 or not _are_names(names) or test.operator not in ("<", ">") or test.base not in bases:
        return None
    lesser_first = sides if test.operator == "<" else sides[::-1]
    best_first = [dominating[columns[0]], dominated[columns[0]]]
    if lesser_first not in (best_first, best_first[::-1]):
        return None
    return Comparison(columns[0], is_least=lesser_first == best_first)
