"""The elastic Update by the formulas per iteration of the papers, corrected, over ground derivations: a slow oracle.

The names are those of the papers: `_old` stands for °, I for the facts up to an iteration, N for the counts of one, L
for the facts of lower strata, `minus` and `plus` for I⁻ and I⁺, in which the epochs differ so far. Programs have no
aggregates and no disjunctions. A mutation is a known mistake, for tests of the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from elastalog.syntax import tree as syntax
from tests.reference.evaluator import Facts, Rule, evaluate, program_of
from tests.reference.levels import Fact, Levels

Mutation = Literal[
    "none",
    "rediscovery tests negation only in the old epoch",
    "rediscovery tests negation only in the new epoch",
    "rediscovery tests negation only in what both epochs share",
    "plus is reduced by the new counts",
    "leftover iterations are kept",
    "a derivation counts once for each body fact in the delta",
    "no sparsification",
]
ALWAYS: Fact = ("", ())
"""⊤, the body of a rule without positive atoms."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """`denied` are the facts of both epochs that its negated atoms match."""

    head: Fact
    body: tuple[Fact, ...]
    denied: frozenset[Fact]

    def times(self, facts: Set[Fact], delta: Set[Fact], mutation: Mutation) -> int:
        """How often D[facts | delta] enumerates it: split by the first body fact in the delta, so once if at all."""
        if not all(fact in facts for fact in self.body):
            return 0
        hits = sum(fact in delta for fact in self.body)
        return hits if mutation == "a derivation counts once for each body fact in the delta" else min(hits, 1)

    def touches(self, changed: Set[Fact], denied: Set[Fact]) -> bool:
        return not changed.isdisjoint(self.body) or not self.denied.isdisjoint(denied)


def as_facts(db: Facts) -> set[Fact]:
    return {(name, fact) for name, known in db.items() for fact in known}


def ground(tree: syntax.Tree, db: Facts) -> list[Derivation]:
    """All derivations over some facts, whatever their negated atoms say."""
    found, program = list[Derivation](), program_of(tree)
    for rule in program.rules:
        rest = tuple(i for i in rule.body if not isinstance(i, syntax.Negation))
        positive = Rule(rule.head, rest, program.schemas, rule.fields, rule.inlined)
        negated = [literal.atom for literal in rule.body if isinstance(literal, syntax.Negation)]
        for head, env in positive.instances(db):
            body = tuple(env[atom.span] for atom in rule.body if isinstance(atom, syntax.Atom)) or (ALWAYS,)
            denied = frozenset(
                (atom.relation, fact)
                for atom in negated
                for fact in db[atom.relation]
                if all(
                    isinstance(term, syntax.Wildcard) or value in positive.values(term, env, db)
                    for term, value in zip(atom.arguments, fact, strict=True)
                )
            )
            found.append(Derivation((rule.relation, head), body, denied))
    return found


def update(tree: syntax.Tree, state_old: Levels, before: Facts, after: Facts, mutation: Mutation = "none") -> Levels:
    """The levels and counts after an update that makes the explicit facts `before` those `after`."""
    found_old, found = (evaluate(tree, facts, with_text_facts=False) for facts in (before, after))
    derivations = ground(tree, {name: found_old[name] | found[name] for name in found})
    explicit_old, explicit = as_facts(before), as_facts(after)
    state: Levels = {}
    lower_old, lower = {ALWAYS}, {ALWAYS}
    for component in program_of(tree).components:
        own_old = {fact: pair for fact, pair in state_old.items() if fact[0] in component}
        own = [d for d in derivations if d.head[0] in component]
        starts = [{fact for fact in known if fact[0] in component} for known in (explicit_old, explicit)]
        result = update_stratum(own, own_old, (lower_old, lower), (starts[0], starts[1]), mutation)
        lower_old, lower = lower_old | own_old.keys(), lower | result.keys()
        state |= result
    return state


def update_stratum(
    derivations: list[Derivation],
    state_old: Levels,
    lower: tuple[set[Fact], set[Fact]],
    explicit: tuple[set[Fact], set[Fact]],
    mutation: Mutation,
) -> Levels:
    L_old, L = lower
    L_minus, L_plus = L_old - L, L - L_old
    I_old, I_new = L_old | explicit[0], L | explicit[1]
    minus, plus = I_old - I_new, I_new - I_old
    delta_old, delta = set(I_old), set(I_new)
    result: Levels = dict.fromkeys(explicit[1], (0, 1))
    k = 0
    while k == 0 or delta:
        k += 1
        N_old = {fact: count for fact, (level, count) in state_old.items() if level == k}
        N = Counter(N_old)
        for d in derivations:
            if d.head not in I_old and d.denied.isdisjoint(L_old) and d.touches(minus, L_plus):
                N[d.head] -= d.times(I_old, delta_old, mutation)
            if d.head not in I_new and d.denied.isdisjoint(L) and d.touches(plus, L_minus):
                N[d.head] += d.times(I_new, delta, mutation)
            if d.head in minus and is_rediscovered(d, L_old, L, mutation):
                N[d.head] += d.times(I_old & I_new, delta, mutation)
        assert all(count >= 0 for count in N.values())
        sparse = frozenset() if mutation == "no sparsification" else plus
        delta_old, delta = set(N_old), {fact for fact in +N if fact not in sparse}
        assert delta.isdisjoint(result), "a fact settles once"
        result |= {fact: (k, N[fact]) for fact in delta}
        I_old, I_new = I_old | delta_old, I_new | delta
        minus = (minus - delta) | (delta_old - I_new)
        plus = (plus - (delta if mutation == "plus is reduced by the new counts" else delta_old)) | (delta - I_old)
        assert minus <= I_old - I_new
        assert plus <= I_new - I_old
        assert (I_old - minus) | plus == I_new
    if mutation == "leftover iterations are kept":
        result |= {fact: pair for fact, pair in state_old.items() if pair[0] > k and fact not in result}
    return result


def is_rediscovered(d: Derivation, L_old: Set[Fact], L: Set[Fact], mutation: Mutation) -> bool:
    """Whether the negated atoms of a derivation hold, as re-discovery asks: in both epochs."""
    match mutation:
        case "rediscovery tests negation only in the old epoch":
            return d.denied.isdisjoint(L_old)
        case "rediscovery tests negation only in the new epoch":
            return d.denied.isdisjoint(L)
        case "rediscovery tests negation only in what both epochs share":
            return d.denied.isdisjoint(L_old & L)
    return d.denied.isdisjoint(L_old) and d.denied.isdisjoint(L)
