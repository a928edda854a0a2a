"""Rules of components change one by one: those of an instance are its own."""

from __future__ import annotations

from pathlib import Path

import elastalog
from elastalog.program import Program, RuleEdits, change_rules, rule_texts

TEXT = """
.comp Graph {
    .decl edge, path(x: number, y: number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    edge(1, 2). edge(2, 3).
}
.init a = Graph
.init b = Graph
"""
STEP = "b.path(x, z) :- b.path(x, y), b.edge(y, z)."


def test_a_rule_of_one_instance_is_removed() -> None:
    program = Program.parse(TEXT)
    assert program.is_flattened
    assert rule_texts(program)[3] == STEP
    change = change_rules(program, RuleEdits(removed=(4,)))
    assert change.removed == (STEP,)
    assert rule_texts(change.after) == rule_texts(program)[:3]
    assert not change.after.is_flattened
    assert len(change.after.checked.facts) == len(program.checked.facts)


def test_rules_of_a_session_change_and_change_back() -> None:
    with elastalog.open(TEXT) as db:
        with db.update() as update:
            update.remove_rules(STEP)
        assert set(db["b.path"]) == {(1, 2), (2, 3)}
        assert set(db["a.path"]) == {(1, 2), (2, 3), (1, 3)}
        with db.update() as update:
            update.add_rules(STEP)
        assert set(db["b.path"]) == {(1, 2), (2, 3), (1, 3)}


def test_a_store_keeps_a_program_with_components(tmp_path: Path) -> None:
    with elastalog.open(TEXT, store=tmp_path / "store") as db, db.update() as update:
        update.insert("a.edge", [(3, 4)])
    with elastalog.open(store=tmp_path / "store") as db:
        assert (1, 4) in db["a.path"]
        with db.update() as update:
            update.remove_rules(STEP)
    with elastalog.open(store=tmp_path / "store") as db:
        assert set(db["b.path"]) == {(1, 2), (2, 3)}
        assert (1, 4) in db["a.path"]
        assert "b.path(2, 3)" in str(db.explain("b.path(2, 3)"))
