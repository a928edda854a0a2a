"""The elastic state by brute force: level and count of every fact, from the definition (no iteration, no deltas).

A derivation is a rule with the facts of its positive atoms; it fires one above the highest of them; the level of a
fact is the lowest firing of its derivations, its count the number of derivations that fire there. Explicit facts have
(0, 1).

Rules are those in force, whose derivations are told apart: inline relations are gone, and a negated group has the
alternatives that De Morgan gives it. What they derive must be what follows from what was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any, Literal

from elastalog.analysis.inline import inline
from elastalog.analysis.negation import without_groups
from elastalog.syntax import tree as syntax
from elastalog.syntax.tree import mapped
from tests.reference.evaluator import Environment, Given, Numbered, Rule, evaluate, explicit_facts, program_of
from tests.reference.walking import name_of, walk

Fact = tuple[str, tuple[Any, ...]]
Levels = dict[Fact, tuple[int, int]]
Support = tuple[list[Fact], list[list[list[Any]]]]


def levels(
    tree: syntax.Tree,
    facts: Given,
    kind: Literal["local", "global"] = "local",
    *,
    with_text_facts: bool = True,
    classes: Collection[str] | None = None,
    known: Numbered | None = None,
) -> Levels:
    """Level and count of every fact. `local` levels start from 0 in every stratum; `global` ones are proof heights.
    `classes`: the equivalences that are kept as classes, unless given those that can be. In the recursion of such a one
    a pair counts as much as the best chain, and derivations are not counted. `known`: all facts, if they have been
    evaluated."""
    db = evaluate(tree, facts, with_text_facts=with_text_facts) if known is None else known
    written, tree = tree, in_force(tree)
    if tree is not written:
        known, db = db, evaluate(tree, facts, with_text_facts=with_text_facts, numbers=dict(db.numbers))
        assert db == known, "what is in force derives other facts than what was written"
    program = program_of(tree)
    if classes is None:
        classes = program.classes | program.merged if kind == "local" else ()
    classes = set(classes)
    explicit = {(r, f) for r, known in explicit_facts(tree, facts, with_text_facts).items() for f in known}
    found: dict[Fact, float] = {(r, f): 0 if (r, f) in explicit else inf for r, known in db.items() for f in known}
    counts: dict[Fact, int] = dict.fromkeys(explicit, 1)
    for component in program.components:
        closing = [rule for rule in program.closing if rule.relation in classes]
        rules = [rule for rule in program.rules if rule.relation in component and rule not in closing]
        merged = component & classes - program.classes
        derivations = [
            ((rule.relation, head), support(env, kind))
            for rule in rules
            for head, env in instances(rule, db, classes - merged)
            if (rule.relation, head) in found  # a choice domain may keep some out
        ]
        seen = found if kind == "global" else {f: level for f, level in found.items() if f[0] in component}
        is_stable = False
        while not is_stable:
            is_stable = True
            by_chains = {(r, pair): level for r in merged for pair, level in chains(r, db[r], seen).items()}
            for head, rests_on in derivations:
                if (fires := firing(rests_on, seen | by_chains)) < seen[head]:
                    seen[head], is_stable = fires, False
        found.update(seen)
        for head, rests_on in derivations:
            if merged:
                counts[head] = 1
            elif firing(rests_on, seen) == found[head]:  # never an explicit head: nothing fires at 0
                counts[head] = counts.get(head, 0) + 1
        for relation in component & classes:
            for pair, level in chains(relation, db[relation], found).items():
                if found[relation, pair] == inf or (relation in merged and found[relation, pair] > 0):
                    found[relation, pair], counts[relation, pair] = 1 + level, 1
    return {fact: (int(level), counts[fact]) for fact, level in found.items()}


@lru_cache(maxsize=64)
def in_force(tree: syntax.Tree) -> syntax.Tree:
    """The tree itself if it has neither inline relations nor negated groups."""
    if any(declared.is_inline for declared in walk(tree.items, syntax.RelationDeclaration)):
        tree, _ = inline(tree)
    return mapped(tree, _without_groups)


def _without_groups(node: Any) -> Any:
    bodies = syntax.Clause | syntax.Subsumption | syntax.Aggregate
    if isinstance(node, bodies) and any(True for _ in walk(node.body, syntax.NegatedGroup)):
        return replace(node, body=without_groups(node.body))
    return node


def chains(relation: str, pairs: Iterable[Any], found: dict[Fact, float]) -> dict[Any, float]:
    """Of every pair of an equivalence the least, over chains of pairs that are given or derived by rules, of the
    highest level in the chain. (Floyd and Warshall's way.)"""
    best = dict.fromkeys(pairs, inf)
    stored = {(x, y): found[relation, (x, y)] for x, y in best if found[relation, (x, y)] < inf}
    for (x, y), level in stored.items():
        for pair in ((x, y), (y, x), (x, x), (y, y)):
            best[pair] = min(best[pair], level)
    for z in sorted({x for x, _ in best}):
        for x, y in best:
            if (x, z) in best and (z, y) in best:
                best[x, y] = min(best[x, y], max(best[x, z], best[z, y]))
    return best


def instances(rule: Rule, db: Numbered, classes: set[str]) -> Iterable[tuple[Any, Environment]]:
    """The instantiations of a rule. A wildcard beside a value in an atom of an equivalence that is kept as classes only
    says that the value is in a class: what it stands for makes no difference."""
    if classes.isdisjoint(rule.reads):
        return db.instances[rule]
    attaining = tuple(aggregate.body for _, aggregate, _ in rule.witnesses.values())
    wild = [
        (atom.span, {name_of(term) for term in atom.arguments if isinstance(term, syntax.Wildcard)})
        for atom in walk((rule.body, attaining), syntax.Atom, is_deep=False)
        if atom.relation in classes
    ]
    negated = {negation.atom.span for negation in walk(rule.body, syntax.Negation)}
    left_out = {key for span, names in wild if names and span not in negated for key in (span, *sorted(names)[:1])}
    if not left_out:
        return db.instances[rule]
    distinct = {}
    for head, env in reversed(db.instances[rule]):
        # Members of aggregates follow from the rest; which alternative of a group it is does not.
        told = {(k, None if k in left_out else v) for k, v in env.items() if not isinstance(v, list | set)}
        distinct[head, frozenset(told)] = head, env
    return distinct.values()


def support(env: Environment, kind: str) -> Support:
    """What an instantiation rests on: the facts of its positive atoms and, with global levels, the members of its
    aggregates, each with the ways to derive it."""
    atoms = [fact for key, fact in env.items() if isinstance(fact, tuple) and not isinstance(key, str)]
    groups = [group for group in env.values() if isinstance(group, list) and group] if kind == "global" else []
    return atoms, [[[support(inner, kind) for inner in member] for member in group] for group in groups]


def firing(rests_on: Support, seen: dict[Fact, float]) -> float:
    """One above the highest fact that an instantiation rests on; what is not in `seen` is below."""
    atoms, groups = rests_on
    highest = max((seen.get(fact, 0) for fact in atoms), default=0)
    for group in groups:
        # A hidden fact per member (the lowest of its derivations) and one for the aggregate above them all.
        highest = max(highest, 1 + max(min(firing(inner, seen) for inner in member) for member in group))
    return 1 + highest
