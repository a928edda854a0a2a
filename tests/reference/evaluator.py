"""A naive evaluator of the whole dialect: the judge of the engine, with which it shares nothing but the syntax tree.

Per stratum every rule is evaluated on all facts until nothing new appears. An environment maps names to values and,
under spans, what it rests on: a positive atom to its fact, an aggregate to its members, each with its environments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from elastalog.syntax import tree as syntax
from tests.reference.values import AGGREGATES, apply, as_value, compare

Facts = dict[str, set[tuple[Any, ...]]]
Given = Mapping[str, Collection[tuple[Any, ...]]]
Environment = dict[Any, Any]
RESULTS = {"strlen": "number", "ord": "number", "to_number": "number", "ftoi": "number", "utoi": "number"}
RESULTS |= {"to_unsigned": "unsigned", "itou": "unsigned", "ftou": "unsigned", "to_float": "float", "itof": "float"}
RESULTS |= {"utof": "float", "to_string": "symbol", "substr": "symbol", "count": "number", "mean": "float"}


def evaluate(tree: syntax.Tree, facts: Given, *, with_text_facts: bool = True) -> Facts:
    """Every fact of every relation. `facts` are explicit facts; those written in the program text are added to them."""
    db, grew = explicit_facts(tree, facts, with_text_facts), True
    for component in components(tree):
        mine, grew = [rule for rule in rules_of(tree) if rule.head.relation in component], True
        while grew:
            new = {(rule.head.relation, fact) for rule in mine for fact, _ in rule.instances(db)}
            grew = any(fact not in db[name] for name, fact in new)
            for name, fact in new:
                db[name].add(fact)
    return db


@lru_cache(maxsize=64)
def schemas_of(tree: syntax.Tree) -> dict[str, list[str]]:
    """The base types of the columns of every relation."""
    parents = {item.name: item.parents[0][0] for item in tree.items if isinstance(item, syntax.TypeDeclaration)}

    def base(name: str) -> str:
        return base(parents[name]) if name in parents else name

    declared = [item for item in tree.items if isinstance(item, syntax.RelationDeclaration)]
    return {item.name: [base(attribute.type_name) for attribute in item.attributes] for item in declared}


@lru_cache(maxsize=64)
def rules_of(tree: syntax.Tree, *, is_fact: bool = False) -> list[Rule]:
    """The rules, or the facts in the text. A fact with arguments to compute is a rule."""
    clauses = [item for item in tree.items if isinstance(item, syntax.Clause)]
    rules = [Rule(head, clause.body, schemas_of(tree)) for clause in clauses for head in clause.heads]
    computed = syntax.Call | syntax.Aggregate
    return [r for r in rules if is_fact == (not r.body and not any(isinstance(t, computed) for t in r.head.arguments))]


def explicit_facts(tree: syntax.Tree, facts: Given, with_text_facts: bool) -> Facts:
    schemas = schemas_of(tree)
    db: Facts = {name: {tuple(map(as_value, f, bases)) for f in facts.get(name, ())} for name, bases in schemas.items()}
    for rule in rules_of(tree, is_fact=True) if with_text_facts else ():
        db[rule.head.relation].update(fact for fact, _ in rule.instances(db))
    return db


@lru_cache(maxsize=64)
def components(tree: syntax.Tree) -> list[set[str]]:
    """The strongly connected components of the relations, each after those it depends on."""
    below = {name: {name} for name in schemas_of(tree)}
    for rule in rules_of(tree):
        below[rule.head.relation] |= {node.relation for node in walk(rule.body) if isinstance(node, syntax.Atom)}
    while any(not below[b] <= below[a] for a in below for b in below[a]):
        below = {a: set().union(*(below[b] for b in below[a])) for a in below}
    found = {frozenset(b for b in below[a] if a in below[b]): len(below[a]) for a in below}
    return [set(component) for component in sorted(found, key=lambda c: found[c])]  # what is below has less below it


def walk(node: Any, is_deep: bool = True) -> Iterator[Any]:
    """A node and all nodes in it; those in aggregates only if `is_deep`."""
    yield node
    if is_deep or not isinstance(node, syntax.Aggregate):
        for child in node if isinstance(node, tuple) else [getattr(node, name) for name in getattr(node, "__slots__", ())]:
            yield from walk(child, is_deep)


def names(node: Any, is_deep: bool = True) -> set[str]:
    return {part.name for part in walk(node, is_deep) if isinstance(part, syntax.Variable)}


class Rule:
    """`head :- body.`"""

    def __init__(self, head: syntax.Atom, body: syntax.Body, schemas: dict[str, list[str]]) -> None:
        self.head, self.body = head, tuple(sorted(body, key=lambda literal: isinstance(literal, syntax.Atom)))
        self.shared: dict[Any, set[str]] = {}  # the names of an aggregate that are those of the rule around it
        self.types = {base: base for base in ("number", "unsigned", "float", "symbol")}
        self.infer((head, body), set(), schemas)

    def infer(self, nodes, around, schemas, inner=""):
        """..."""
        same = []
        ...
