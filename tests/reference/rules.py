"""One rule of the reference evaluator: its types, an order of its body that binds every variable, its instantiations.

An environment maps names to values and, under keys that are no names, what the instantiation rests on: the number of a
positive atom to its fact, the span of an aggregate to its members. A term has a list of values: none where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from elastalog.syntax import tree as syntax
from tests.reference.values import SIGNATURES, aggregate, apply, as_value, compare

Facts = dict[str, set[tuple[Any, ...]]]
Environment = dict[Any, Any]
Values = Callable[[Environment, Facts], list[Any]]
Step = Callable[[Environment, Facts], Iterator[Environment]]
Schemas = dict[str, list[str]]
Typed = list[tuple[Any, str | None]]
INNER = ("target", "body")  # the fields of a node that lead into an aggregate


class Rule:
    """`head :- body.` without disjunctions."""

    def __init__(self, head: syntax.Atom, body: syntax.Body, schemas: Schemas) -> None:
        self.relation = head.relation
        self.reads = {part.relation for part in parts((head.arguments, body), *INNER) if isinstance(part, syntax.Atom)}
        self.body = Conjunction(body, list(zip(head.arguments, schemas[head.relation], strict=True)), schemas)

    def instances(self, db: Facts) -> Iterator[tuple[tuple[Any, ...], Environment]]:
        """The head of every instantiation, with its environment."""
        return ((head, env) for env, head in self.body.solve({}, db))


class Conjunction:
    """A body without disjunctions, with the terms computed from it, inside the variables of the body around it."""

    def __init__(self, body: syntax.Body, terms: Typed, schemas: Schemas, around: Conjunction | None = None) -> None:
        self.schemas = schemas
        self.scope: set[str] = names((body, tuple(term for term, _ in terms))) | (around.scope if around else set())
        self.types: dict[str, str] = dict(around.types) if around else {}
        for literal in body * (1 + len(body)):  # types spread through equalities, at worst one literal a round
            self.typed(literal)
        bound, left, self.steps = set(around.scope if around else ()), dict(enumerate(body)), list[Step]()
        while left:
            ready = [i for i in left if self.is_ready(left[i], bound)]
            first = max(ready, key=lambda i: (not isinstance(left[i], syntax.Atom), len(names(left[i]) & bound)))
            self.steps.append(self.step(first, left[first], bound))
            bound |= names(left.pop(first))
        self.terms = [self.values(term, self.base(term, base) or "number") for term, base in terms]

    def solve(self, env: Environment, db: Facts, done: int = 0) -> Iterator[tuple[Environment, tuple[Any, ...]]]:
        """Every environment that satisfies the body, with the values of the terms."""
        if done == len(self.steps):
            yield from ((env, values) for values in product(*(term(env, db) for term in self.terms)))
        else:
            for extended in self.steps[done](env, db):
                yield from self.solve(extended, db, done + 1)

    def base(self, term: Any, want: str | None = None) -> str | None:
        """The type of a term, as far as it is known, where `want` is expected; variables learn it."""
        match term:
            case syntax.Variable():
                return self.types.setdefault(term.name, want) if want else self.types.get(term.name)
            case syntax.Float() | syntax.String():
                return "float" if isinstance(term, syntax.Float) else "symbol"
            case syntax.Call() if term.functor in SIGNATURES:
                arguments, result = SIGNATURES[term.functor]
                _ = [self.base(argument, base) for argument, base in zip(term.arguments, arguments, strict=True)]
                return result
            case syntax.Call():
                known = want or next((base for base in map(self.base, term.arguments) if base), None)
                _ = [self.base(argument, known) for argument in term.arguments]
                return known
            case syntax.Aggregate(operator="count" | "mean"):
                return "number" if term.operator == "count" else "float"
            case syntax.Aggregate():
                inner = Conjunction(alternatives(term.body)[0], [(term.target, None)], self.schemas, self)
                return inner.base(term.target, want)
        return "unsigned" if getattr(term, "is_unsigned", False) else want

    def typed(self, literal: Any) -> Typed:
        """The terms of a literal with their types."""
        if isinstance(literal, syntax.Comparison):
            sides = (literal.left, literal.right)
            base = "symbol" if literal.operator in ("match", "contains") else self.base(sides[0]) or self.base(sides[1])
            return [(term, self.base(term, base) or "number") for term in sides]
        atom = getattr(literal, "atom", literal)
        bases = self.schemas[atom.relation] if isinstance(atom, syntax.Atom) else []
        return [
            (term, self.base(term, base) or base)
            for term, base in zip(getattr(atom, "arguments", ()), bases, strict=True)
        ]

    def needs(self, node: Any) -> set[str]:
        """The variables that must be bound before a node can be computed; of aggregates, those shared with the rule."""
        return names(node, *INNER) & self.scope

    def is_ready(self, literal: Any, bound: set[str]) -> bool:
        if isinstance(literal, syntax.Atom):
            computed = tuple(term for term in literal.arguments if not name_bound(term))
            return self.needs(computed) <= bound | {name_bound(term) for term in literal.arguments}
        if isinstance(literal, syntax.Comparison) and literal.operator == "=":
            left, right = self.needs(literal.left) <= bound, self.needs(literal.right) <= bound
            return (left and (right or bool(name_bound(literal.right)))) or (right and bool(name_bound(literal.left)))
        return self.needs(literal) <= bound

    def step(self, number: int, literal: Any, bound: set[str]) -> Step:
        """What a literal does to an environment in which `bound` is bound."""
        terms = [(term, self.values(term, base or "number")) for term, base in self.typed(literal)]
        match literal:
            case syntax.Atom():
                binding = [name_bound(term) for term, _ in terms]
                computed = [(i, values) for i, (_, values) in enumerate(terms) if not binding[i]]
                return lambda env, db: match_atom(env, db, literal.relation, number, binding, computed)
            case syntax.Negation():
                known = [(i, values) for i, (term, values) in enumerate(terms) if not isinstance(term, syntax.Wildcard)]
                return lambda env, db: (
                    env
                    for wanted in product(*(values(env, db) for _, values in known))
                    if not any(
                        all(fact[i] == w for (i, _), w in zip(known, wanted, strict=True))
                        for fact in db[literal.atom.relation]
                    )
                )
            case syntax.Comparison():
                (left, left_values), (right, right_values) = terms
                if literal.operator == "=" and (name := name_bound(left)) and name not in bound:
                    return lambda env, db: ({**env, name: value} for value in right_values(env, db))
                if literal.operator == "=" and (name := name_bound(right)) and name not in bound:
                    return lambda env, db: ({**env, name: value} for value in left_values(env, db))
                return lambda env, db: (
                    env
                    for a, b in product(left_values(env, db), right_values(env, db))
                    if compare(literal.operator, a, b)
                )
        return lambda env, db: iter([env] if literal.value else [])

    def values(self, term: Any, base: str) -> Values:
        """The values that a term of type `base` has in an environment."""
        match term:
            case syntax.Variable():
                return lambda env, db: [env[term.name]]
            case syntax.Wildcard():
                return lambda env, db: []
            case syntax.Call():
                expected = SIGNATURES.get(term.functor, ((base,) * len(term.arguments), base))[0]
                bases = [self.base(a, want) or "number" for a, want in zip(term.arguments, expected, strict=True)]
                arguments = [self.values(a, want) for a, want in zip(term.arguments, bases, strict=True)]
                return lambda env, db: [
                    value
                    for chosen in product(*(argument(env, db) for argument in arguments))
                    for value in apply(term.functor, chosen, base)
                ]
            case syntax.Aggregate():
                target: Typed = [(term.target, None)] if term.target else []
                bodies = [Conjunction(body, target, self.schemas, self) for body in alternatives(term.body)]
                return lambda env, db: aggregate_values(env, db, term, base, bodies, self.needs(term))
        constant = as_value(term.value, base)
        return lambda env, db: [constant]


def match_atom(
    env: Environment,
    db: Facts,
    relation: str,
    number: int,
    binding: list[str | None],
    computed: list[tuple[int, Values]],
) -> Iterator[Environment]:
    known = [(i, env[name]) for i, name in enumerate(binding) if name in env]
    for fact in db[relation]:
        if any(fact[i] is not value and fact[i] != value for i, value in known):
            continue
        extended = {**env, number: (relation, fact)}
        if any(
            name and not compare("=", extended.setdefault(name, v), v) for name, v in zip(binding, fact, strict=True)
        ):
            continue
        if all(any(compare("=", value, fact[i]) for value in values(extended, db)) for i, values in computed):
            yield extended


def aggregate_values(
    env: Environment, db: Facts, term: syntax.Aggregate, base: str, bodies: list[Conjunction], shared: set[str]
) -> list[Any]:
    """Over the distinct assignments of all variables, wildcards included; records the support of each in `env`."""
    members: dict[frozenset[Any], Any] = {}
    support: dict[frozenset[Any], list[Environment]] = {}
    for body in bodies:
        for inner, target in body.solve({name: env[name] for name in shared}, db):
            assignment = frozenset(item for item in inner.items() if isinstance(item[0], str))
            members[assignment] = target
            support.setdefault(assignment, []).append(inner)
    env[term.span] = list(support.values())
    return aggregate(term.operator, [value for target in members.values() for value in target or (1,)], base)


def alternatives(body: syntax.Body) -> list[syntax.Body]:
    """The conjunctions that a body with disjunctions stands for, from left to right."""
    choices: list[list[syntax.Body]] = [[()]]
    for literal in body:
        split = literal.alternatives if isinstance(literal, syntax.Disjunction) else None
        choices.append([a for b in split for a in alternatives(b)] if split else [(literal,)])
    return [sum(choice, ()) for choice in product(*choices)]


def parts(node: Any, *more: str) -> Iterator[Any]:
    """The nodes of a term, literal or body, itself included; inside aggregates only with the fields `more` = INNER."""
    children = node
    if not isinstance(node, tuple):
        yield node
        children = [getattr(node, name, ()) for name in ("arguments", "atom", "left", "right", "alternatives", *more)]
    for child in children:
        yield from parts(child, *more) if child is not None else ()


def names(node: Any, *more: str) -> set[str]:
    return {part.name for part in parts(node, *more) if isinstance(part, syntax.Variable)}


def name_bound(term: Any) -> str | None:
    """The name that an argument of a positive atom binds; a wildcard is a variable of its own."""
    return f"_@{term.span.start}" if isinstance(term, syntax.Wildcard) else getattr(term, "name", None)
