"""Random programs and epochs: every fact has a proof, the checker accepts it, and it is as high as it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.provenance.check import check_proof
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof, fold_tree, nodes_of
from tests.generators.seeded import seeded_case
from tests.provenance.databases import facts_of
from tests.reference.cases import parse_accepted
from tests.reference.levels import levels

Explicit = dict[str, set[tuple[Any, ...]]]


def epochs(seed: int, **options: Any) -> Iterator[tuple[elastalog.Session, Explicit]]:
    """A random program after its bootstrap and after each of its updates."""
    program, updates = seeded_case(seed)
    db = elastalog.open(program.text, facts=program.facts, **options)
    explicit = program.explicit
    yield db, explicit
    for update in updates:
        db.apply(update.inserted, update.deleted)
        explicit = update.apply_to(explicit)
        yield db, explicit


def proofs(db: elastalog.Session) -> Iterator[Proof]:
    for name in db:
        for values in sorted(db[name]):
            yield db.explain((name, values))


def height_in_stratum(proof: Proof, component: set[str]) -> int:
    """The height of the top of a proof, up to where it leaves the stratum."""

    def height(node: Node, below: Any) -> int:
        if isinstance(node, Proof) and (node.rule is None or node.fact.relation not in component):
            return 0
        return max(below, default=0) + 1 if isinstance(node, Proof) else 0

    return fold_tree(proof, height)


@pytest.mark.parametrize(("strategy", "kind"), [("elastic", "local"), ("elastic", "global"), ("recompute", "local")])
def test_every_fact_has_a_proof_of_the_right_height_that_the_checker_accepts(strategy: str, kind: Any) -> None:
    for seed in range(1000, 1014):
        for db, explicit in epochs(seed, strategy=strategy, levels=kind):
            tree = parse_accepted(db.program.tree.source.text)
            expected = levels(tree, explicit, kind, with_text_facts=False)
            component_of = {name: set(s.relations) for s in db.program.checked.strata for name in s.relations}
            facts = facts_of(db)
            for proof in proofs(db):
                verdict = check_proof(proof, db.program.checked, explicit, facts)
                assert verdict.accepted, (seed, verdict.reason)
                assert verdict.unexpanded == 0
                relation, values = proof.fact
                found = proof.height if kind == "global" else height_in_stratum(proof, component_of[relation])
                assert found == expected[relation, values][0], (seed, proof.to_tree())


def test_proofs_by_size_are_accepted_and_never_larger_than_those_by_height() -> None:
    for seed in range(1000, 1007):
        by_height, by_size = epochs(seed), epochs(seed, metric="size")
        for (db, explicit), (other, _) in zip(by_height, by_size, strict=True):
            facts = facts_of(db)
            for high, small in zip(proofs(db), proofs(other), strict=True):
                assert check_proof(small, db.program.checked, explicit, facts).accepted
                assert small.size <= high.size


def test_a_proof_to_a_depth_is_the_top_of_the_whole_proof() -> None:
    for seed in range(1000, 1006):
        for db, explicit in epochs(seed):
            facts = facts_of(db)
            for whole in proofs(db):
                for depth in (0, 1, 2):
                    part = db.explain(whole.fact, depth)
                    assert check_proof(part, db.program.checked, explicit, facts).accepted
                    assert shown(part, depth) == shown(whole, depth)


def shown(proof: Proof, depth: int) -> Any:
    """Facts and rules down to a depth, explicit facts included where the depth ends."""
    if depth == 0:
        return proof.fact
    below = [child for child in proof.children if isinstance(child, Proof)]
    return proof.fact, proof.rule, [shown(child, depth - 1) for child in below]


def test_all_proofs_come_in_order_are_distinct_and_accepted() -> None:
    for seed in range(1000, 1008):
        for db, explicit in epochs(seed, levels="global"):
            facts = facts_of(db)
            for best in list(proofs(db))[::3]:
                found = list(db.proofs(best.fact, limit=6))
                heights = [proof.height for proof in found]
                assert heights == sorted(heights, key=lambda height: height or 0)
                assert heights[0] == best.height
                assert len({proof.to_json() for proof in found}) == len(found)
                for proof in found:
                    verdict = check_proof(proof, db.program.checked, explicit, facts)
                    assert verdict.accepted, (seed, verdict.reason)


def test_derivations_are_the_derivations_that_the_count_counts() -> None:
    for seed in range(1000, 1008):
        for db, _ in epochs(seed, levels="global"):
            for name in db:
                table = db[name].to_arrow(annotations=True).to_pydict()
                rows = zip(*table.values(), strict=True)
                for *values, level, count in rows:
                    if level == 0 or not values:
                        continue
                    heights = [proof.height for proof in db.derivations((name, tuple(values)))]
                    if None not in heights:
                        assert heights.count(level) == count, (seed, name, values)


def test_a_changed_proof_is_rejected() -> None:
    """One change anywhere: another value, another rule, a premise less, another text, another height."""
    random = Random(7)
    rejected = 0
    for seed in range(1000, 1014):
        for db, explicit in epochs(seed):
            facts = facts_of(db)
            for proof in proofs(db):
                changed = mutated(proof, random, db)
                if changed is not None:
                    verdict = check_proof(changed, db.program.checked, explicit, facts)
                    assert not verdict.accepted, (seed, proof.to_tree(), changed.to_tree())
                    rejected += 1
    assert rejected > 300


def mutated(proof: Proof, random: Random, db: elastalog.Session) -> Proof | None:
    """The proof with one node changed so that it is wrong, whatever the program; None if there is no such change."""
    node = random.choice([node for node in nodes_of(proof) if not isinstance(node, Member)])
    match node:
        case Condition():
            return replace_node(proof, node, Condition(node.kind, node.text + " "))
        case AggregatePremise():
            return replace_node(proof, node, replace(node, number=node.number + 1))
        case Proof():
            match random.randrange(4):
                case 0 if node.height is not None:
                    return replace_node(proof, node, replace(node, height=node.height + 1))
                case 1 if node.children:
                    return replace_node(proof, node, replace(node, children=node.children[1:]))
                case 2 if node.rule is not None:
                    others = [rule for rule in db.program.checked.rules if rule.head.relation != node.fact.relation]
                    return replace_node(proof, node, replace(node, rule=random.choice(others))) if others else None
                case _ if node.rule is not None:
                    return replace_node(proof, node, Proof(node.fact, None, (), True, 0)) if node.height else None
    return None


def replace_node(root: Proof, old: Node, new: Node) -> Proof:
    def combine(node: Node, below: Any) -> Node:
        if node is old:
            return new
        if all(a is b for a, b in zip(below, node.children, strict=True)):
            return node
        assert not isinstance(node, Condition)
        return replace(node, children=tuple(below))

    result = fold_tree(root, combine)
    assert isinstance(result, Proof)
    return result
