"""Running generated cases under a strategy and reading what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.kernel.store.count_vectors import NO_NODE, Vectors
from elastalog.backends.spark.backend import SparkBackend
from elastalog.relations.facts import Relation
from elastalog.session import PendingUpdate, Session
from elastalog.syntax import tree as syntax
from tests.generators.construction import Features, GeneratedProgram
from tests.generators.updates import Update
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate, program_of

Fact = tuple[Any, ...]
Known = dict[str, set[Fact]]
NO_RECURSION = Features(recursion=False)


def pending(db: Session, update: Update) -> PendingUpdate:
    """A generated update, ready to be committed."""
    result = db.update()
    for name, rows in update.deleted.items():
        result.delete(name, rows)
    for name, rows in update.inserted.items():
        result.insert(name, rows)
    return result


def backend_of(db: Session) -> KernelBackend:
    """The kernel of a session: its backend, or what its backend holds."""
    kernel = db._backend.kernel if isinstance(db._backend, SparkBackend) else db._backend
    assert isinstance(kernel, KernelBackend)
    return kernel


def contents(db: Session, names: Mapping[str, Any]) -> Known:
    return {name: set(db[name]) for name in names}


def expectations(program: GeneratedProgram, updates: list[Update]) -> list[tuple[Known, Known]]:
    """After every update: the explicit facts, and all facts according to the reference."""
    tree, explicit, expected = parse_accepted(program.text), program.explicit, []
    for update in updates:
        explicit = update.apply_to(explicit)
        expected.append((explicit, evaluate(tree, explicit, with_text_facts=False)))
    return expected


def counters(db: Session, name: str) -> dict[Fact, tuple[int, int]]:
    """(C_nr, C_r) of every fact of a relation, as the engine keeps them."""
    backend = backend_of(db)
    relation = backend.held.relations[name]
    rows = relation.present_rows()
    facts = Relation.of(db.schemas[name], db._dictionary, relation.rows[rows])
    kept = zip(relation.count[rows].tolist(), (relation.level[rows] >> 1).tolist(), strict=True)
    return dict(zip(facts, kept, strict=True))


def derivation_counts(tree: syntax.Tree, explicit: Known) -> dict[str, dict[Fact, tuple[int, int]]]:
    """(C_nr, C_r) of every fact by brute force: all derivations over all facts, split by whether a body fact is of
    the stratum."""
    db = evaluate(tree, explicit, with_text_facts=False)
    found = {name: {fact: [int(fact in explicit.get(name, ())), 0] for fact in facts} for name, facts in db.items()}
    for component in program_of(tree).components:
        for rule in program_of(tree).rules:
            for head, environment in rule.instances(db) if rule.relation in component else ():
                body = {v[0] for k, v in environment.items() if isinstance(v, tuple) and not isinstance(k, str)}
                found[rule.relation][head][bool(body & component)] += 1
    return {name: {fact: (nr, r) for fact, (nr, r) in facts.items()} for name, facts in found.items()}


def vectors(db: Session, name: str) -> dict[Fact, dict[int, int]]:
    """The counts by level of every fact of a relation, as the dense strategy keeps them."""
    backend = backend_of(db)
    relation = backend.held.relations[name]
    rows = relation.present_rows()
    facts = Relation.of(db.schemas[name], db._dictionary, relation.rows[rows])
    return {fact: _counts_of(backend.held.vectors[name], int(row)) for fact, row in zip(facts, rows, strict=True)}


def _counts_of(counted: Vectors, row: int) -> dict[int, int]:
    counts = {}
    node = int(counted.first[row]) if row < len(counted.first) else NO_NODE
    while node != NO_NODE:
        level, count, node = (int(value) for value in counted.nodes[node])
        counts[level] = count
    return counts
