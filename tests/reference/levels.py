"""The elastic state by brute force: level and count of every fact, from the definition (no iteration, no deltas).

A derivation is a rule with the facts of its positive atoms; it fires one above the highest of them; the level of a
fact is the lowest firing of its derivations, its count the number of derivations that fire there. Explicit facts have
(0, 1).
"""

from __future__ import annotations

from math import inf
from typing import Any, Literal

from elastalog.syntax import tree as syntax
from tests.reference.evaluator import Environment, Given, evaluate, explicit_facts, program_of

Fact = tuple[str, tuple[Any, ...]]
Levels = dict[Fact, tuple[int, int]]


def levels(
    tree: syntax.Tree, facts: Given, kind: Literal["local", "global"] = "local", *, with_text_facts: bool = True
) -> Levels:
    """Level and count of every fact. `local` levels start from 0 in every stratum; `global` ones are proof heights."""
    db = evaluate(tree, facts, with_text_facts=with_text_facts)
    explicit = {(r, f) for r, known in explicit_facts(tree, facts, with_text_facts).items() for f in known}
    found: dict[Fact, float] = {(r, f): 0 if (r, f) in explicit else inf for r, known in db.items() for f in known}
    counts: dict[Fact, int] = dict.fromkeys(explicit, 1)
    for component in program_of(tree).components:
        rules = [rule for rule in program_of(tree).rules if rule.relation in component]
        derivations = [((rule.relation, head), env) for rule in rules for head, env in rule.instances(db)]
        derivations = [(head, env) for head, env in derivations if head in found]  # a choice domain may keep some out
        seen = found if kind == "global" else {f: level for f, level in found.items() if f[0] in component}
        is_stable = False
        while not is_stable:
            is_stable = True
            for head, env in derivations:
                if (fires := firing(env, seen, kind)) < seen[head]:
                    seen[head], is_stable = fires, False
        found.update(seen)
        for head, env in derivations:
            if firing(env, seen, kind) == found[head]:  # never an explicit head: nothing fires at 0
                counts[head] = counts.get(head, 0) + 1
    return {fact: (int(level), counts[fact]) for fact, level in found.items()}


def firing(env: Environment, seen: dict[Fact, float], kind: str) -> float:
    """One above the highest fact that an instantiation rests on; what is not in `seen` is below."""
    heights = [0.0]
    for key, support in env.items():
        if isinstance(support, tuple) and not isinstance(key, str):  # a positive atom
            heights.append(seen.get(support, 0))
        elif isinstance(support, list) and kind == "global" and support:
            # A hidden fact per member (the lowest of its derivations) and one for the aggregate above them all.
            heights.append(1 + max(min(firing(inner, seen, kind) for inner in member) for member in support))
    return 1 + max(heights)
