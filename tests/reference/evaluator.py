"""A naive evaluator of the whole dialect: the judge of the engine, with which it shares nothing but the syntax tree.

Per stratum every rule (`rules.py`) is evaluated on all facts until nothing new appears.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from elastalog.syntax import tree as syntax
from tests.reference.rules import Facts, Rule, Schemas, alternatives
from tests.reference.values import as_value

Given = Mapping[str, Collection[tuple[Any, ...]]]


def evaluate(tree: syntax.Tree, facts: Given, *, with_text_facts: bool = True) -> Facts:
    """Every fact of every relation. `facts` are explicit facts; those written in the program text are added to them."""
    db, rules = explicit_facts(tree, facts, with_text_facts), rules_of(tree)
    for component in components(tree):
        mine, grew = [rule for rule in rules if rule.relation in component], True
        while grew:
            new = {(rule.relation, head) for rule in mine for head, _ in rule.instances(db)}
            grew = any(rule.reads & component for rule in mine) and any(head not in db[name] for name, head in new)
            for relation, head in new:
                db[relation].add(head)
    return db


@lru_cache(maxsize=64)
def schemas_of(tree: syntax.Tree) -> Schemas:
    """The base types of the columns of every relation."""
    parents = {item.name: item.parents[0][0] for item in tree.items if isinstance(item, syntax.TypeDeclaration)}

    def base(name: str) -> str:
        return base(parents[name]) if name in parents else name

    declared = [item for item in tree.items if isinstance(item, syntax.RelationDeclaration)]
    return {item.name: [base(attribute.type_name) for attribute in item.attributes] for item in declared}


@lru_cache(maxsize=64)
def rules_of(tree: syntax.Tree) -> list[Rule]:
    clauses = [item for item in tree.items if isinstance(item, syntax.Clause)]
    cases = [(head, body) for clause in clauses for head in clause.heads for body in alternatives(clause.body)]
    return [Rule(head, body, schemas_of(tree)) for head, body in cases if not is_fact(head, body)]


def is_fact(head: syntax.Atom, body: syntax.Body) -> bool:
    """Whether a clause is an explicit fact. With arguments to compute it is a rule without atoms."""
    return not body and not any(isinstance(term, syntax.Call | syntax.Aggregate) for term in head.arguments)


def explicit_facts(tree: syntax.Tree, facts: Given, with_text_facts: bool) -> Facts:
    schemas = schemas_of(tree)
    db: Facts = {name: {tuple(map(as_value, f, bases)) for f in facts.get(name, ())} for name, bases in schemas.items()}
    clauses = [item for item in tree.items if isinstance(item, syntax.Clause) and with_text_facts]
    for head in [head for clause in clauses for head in clause.heads if is_fact(head, clause.body)]:
        db[head.relation].update(fact for fact, _ in Rule(head, (), schemas).instances(db))
    return db


@lru_cache(maxsize=64)
def components(tree: syntax.Tree) -> list[set[str]]:
    """The strongly connected components of the relations, each after those it depends on."""
    below = {name: {name} for name in schemas_of(tree)}
    for rule in rules_of(tree):
        below[rule.relation] |= rule.reads
    while any(not below[b] <= below[a] for a in below for b in below[a]):
        below = {a: set().union(*(below[b] for b in below[a])) for a in below}
    found = {frozenset(b for b in below[a] if a in below[b]): len(below[a]) for a in below}
    return [set(component) for component in sorted(found, key=lambda c: found[c])]  # what is below has less below it
