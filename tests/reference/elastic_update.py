"""The elastic Update by the formulas per iteration of the papers, corrected, over ground derivations: a slow oracle.

The names are those of the papers: `_old` stands for °, I for the facts up to an iteration, N for the counts of one, L
for the facts of lower strata, `minus` and `plus` for I⁻ and I⁺, in which the epochs differ so far. Programs have no
aggregates and no disjunctions. `docs/explanation/the-elastic-update.md` shows `Update.stratum` beside the functions of
the kernel that do the same. Mutants make a known mistake each, for tests of the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from elastalog.syntax import tree as syntax
from tests.reference.evaluator import Facts, Rule, evaluate, program_of
from tests.reference.levels import Fact, Levels

ALWAYS: Fact = ("", ())
"""⊤, the body of a rule without positive atoms."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """`denied` are the facts of both epochs that its negated atoms match."""

    head: Fact
    body: tuple[Fact, ...]
    denied: frozenset[Fact]

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


class Update:
    """The algorithm, stratum by stratum."""

    def apply(self, tree: syntax.Tree, state_old: Levels, before: Facts, after: Facts) -> Levels:
        """The levels and counts after an update that makes the explicit facts `before` those `after`."""
        found_old, found = (evaluate(tree, facts, with_text_facts=False) for facts in (before, after))
        derivations = ground(tree, {name: found_old[name] | found[name] for name in found})
        explicit_old, explicit = as_facts(before), as_facts(after)
        state: Levels = {}
        L_old, L = {ALWAYS}, {ALWAYS}
        for component in program_of(tree).components:
            own_old = {fact: pair for fact, pair in state_old.items() if fact[0] in component}
            own = [d for d in derivations if d.head[0] in component]
            E_old, E = ({fact for fact in known if fact[0] in component} for known in (explicit_old, explicit))
            result = self.stratum(own, own_old, L_old, L, E_old, E)
            L_old, L = L_old | own_old.keys(), L | result.keys()
            state |= result
        return state

    def stratum(
        self, derivations: list[Derivation], state_old: Levels,
        L_old: Set[Fact], L: Set[Fact], E_old: Set[Fact], E: Set[Fact],
    ) -> Levels:  # fmt: skip
        L_minus, L_plus = L_old - L, L - L_old
        I_old, I_new = L_old | E_old, L | E
        minus, plus = I_old - I_new, I_new - I_old
        delta_old, delta = set(I_old), set(I_new)
        result: Levels = dict.fromkeys(E, (0, 1))
        k = 0
        while k == 0 or delta:
            k += 1
            N_old = {fact: count for fact, (level, count) in state_old.items() if level == k}
            N = Counter(N_old)
            for d in derivations:
                if d.head not in I_old and d.denied.isdisjoint(L_old) and d.touches(minus, L_plus):
                    N[d.head] -= self.times(d, I_old, delta_old)
                if d.head not in I_new and d.denied.isdisjoint(L) and d.touches(plus, L_minus):
                    N[d.head] += self.times(d, I_new, delta)
                if d.head in minus and self.holds_in_both(d, L_old, L):
                    N[d.head] += self.times(d, I_old & I_new, delta)
            assert all(count >= 0 for count in N.values())
            delta_old, delta = set(N_old), {fact for fact in +N if fact not in self.settled(plus)}
            assert delta.isdisjoint(result), "a fact settles once"
            result |= {fact: (k, N[fact]) for fact in delta}
            I_old, I_new = I_old | delta_old, I_new | delta
            minus = (minus - delta) | (delta_old - I_new)
            plus = (plus - self.no_longer_ahead(delta_old, delta)) | (delta - I_old)
            assert minus <= I_old - I_new
            assert plus <= I_new - I_old
            assert (I_old - minus) | plus == I_new
        return result | self.left_over(state_old, result, k)

    def times(self, d: Derivation, facts: Set[Fact], delta: Set[Fact]) -> int:
        """How often D[facts | delta] enumerates it: split by the first body fact in the delta, so once if at all."""
        return int(all(fact in facts for fact in d.body) and not delta.isdisjoint(d.body))

    def holds_in_both(self, d: Derivation, L_old: Set[Fact], L: Set[Fact]) -> bool:
        """Whether the negated atoms of a derivation hold, as re-discovery asks: in both epochs."""
        return d.denied.isdisjoint(L_old) and d.denied.isdisjoint(L)

    def settled(self, plus: Set[Fact]) -> Set[Fact]:
        """The facts that have their level already (sparsification)."""
        return plus

    def no_longer_ahead(self, delta_old: Set[Fact], delta: Set[Fact]) -> Set[Fact]:
        """The facts of I⁺ that the old epoch has too from this iteration on."""
        return delta_old

    def left_over(self, state_old: Levels, result: Levels, last: int) -> Levels:
        """What becomes of facts of iterations beyond the last: nothing, they are gone."""
        return {}


def update(tree: syntax.Tree, state_old: Levels, before: Facts, after: Facts, mutation: str = "none") -> Levels:
    """The levels and counts after an update, by the algorithm or by one of its mutants."""
    return MUTANTS.get(mutation, Update)().apply(tree, state_old, before, after)


# --- mutants ---------------------------------------------------------------------------------------------------------


class _NegationInOld(Update):
    def holds_in_both(self, d: Derivation, L_old: Set[Fact], L: Set[Fact]) -> bool:
        return d.denied.isdisjoint(L_old)


class _NegationInNew(Update):
    def holds_in_both(self, d: Derivation, L_old: Set[Fact], L: Set[Fact]) -> bool:
        return d.denied.isdisjoint(L)


class _NegationInShared(Update):
    def holds_in_both(self, d: Derivation, L_old: Set[Fact], L: Set[Fact]) -> bool:
        return d.denied.isdisjoint(L_old & L)


class _PlusReducedByNew(Update):
    def no_longer_ahead(self, delta_old: Set[Fact], delta: Set[Fact]) -> Set[Fact]:
        return delta


class _KeepingLeftovers(Update):
    def left_over(self, state_old: Levels, result: Levels, last: int) -> Levels:
        return {fact: pair for fact, pair in state_old.items() if pair[0] > last and fact not in result}


class _CountingEveryHit(Update):
    def times(self, d: Derivation, facts: Set[Fact], delta: Set[Fact]) -> int:
        return sum(fact in delta for fact in d.body) if all(fact in facts for fact in d.body) else 0


class _WithoutSparsification(Update):
    def settled(self, plus: Set[Fact]) -> Set[Fact]:
        return frozenset()


MUTANTS: Mapping[str, type[Update]] = {
    "rediscovery tests negation only in the old epoch": _NegationInOld,
    "rediscovery tests negation only in the new epoch": _NegationInNew,
    "rediscovery tests negation only in what both epochs share": _NegationInShared,
    "plus is reduced by the new counts": _PlusReducedByNew,
    "leftover iterations are kept": _KeepingLeftovers,
    "a derivation counts once for each body fact in the delta": _CountingEveryHit,
    "no sparsification": _WithoutSparsification,
}
