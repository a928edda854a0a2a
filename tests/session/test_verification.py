"""`verify` evaluates in another way than sessions do, so that it sees what these derive wrongly, time and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel import strata
from elastalog.backends.kernel.store.relation import KernelRelation
from tests.closures import CLOSURE
from tests.commands import run
from tests.engine.judging import LEVEL_KINDS, Kind
from tests.generators.construction import EVERYTHING, Features
from tests.generators.seeded import seeded_case

PATHS = f"""{CLOSURE}.decl far(x: number)
far(x) :- path(x, y), y > x + 3.
.output far
"""
EDGES = [(i, i + 1) for i in range(12)]
OTHERS = ("dense", "dred", "dredc", "bf", "bfc")


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's own fixpoint misses what only the last rounds find, whenever it is evaluated."""

    def evaluate(stratum: Any, variants: Any, workers: Any, *rest: Any) -> bool:
        is_complete = whole(stratum, variants, workers, *rest)
        relations = workers.relations
        for name in stratum.relations:
            relation = relations[name]
            kept = np.flatnonzero(relation.level[: relation.used] < 5)
            words, levels = relation.rows[kept].copy(), relation.level[kept].copy()
            relations[name] = KernelRelation(name, words.shape[1], True)
            relations[name].load(words)
            relations[name].level[: len(words)], relations[name].count[: len(words)] = levels, 1
        return is_complete

    whole = strata.evaluate
    monkeypatch.setattr(strata, "evaluate", evaluate)


@pytest.mark.usefixtures("forgetful")
def test_a_store_that_the_engine_derives_wrongly_is_found_out(tmp_path: Path) -> None:
    with elastalog.open(PATHS, {"edge": EDGES}, store=tmp_path / "store") as db:
        assert len(db["path"]) < 78
        found = db.verify()
    assert found.missing["path"] == 78 - len(db["path"])
    told = run("verify", tmp_path / "store", "--recompute")
    assert told.exit_code == 1
    assert f"path: {found.missing['path']:,} facts missing" in told.stderr


def test_facts_that_a_store_lacks_or_has_too_many_are_found(tmp_path: Path) -> None:
    with elastalog.open(PATHS, {"edge": EDGES}, store=tmp_path / "store") as db:
        assert db.verify().is_exact
        relation = db._backend.held.relations["path"]
        relation.rows[relation.used - 1] = (11, 3)  # instead of (0, 12), which is derived last
        found = db.verify()
    assert (found.missing, found.unwanted) == ({"path": 1}, {"path": 1})


def test_the_command_says_how_it_looked(tmp_path: Path) -> None:
    chosen = ".decl one(x: number) choice-domain x\none(x) :- edge(x, _).\n"
    elastalog.open(PATHS + chosen, {"edge": EDGES}, store=tmp_path / "store").close()
    told = run("verify", tmp_path / "store", "--recompute")
    assert told.exit_code == 0, told.stderr
    assert told.stderr.endswith(
        ", computed anew with sorted joins, has the same facts (one: there is one algorithm for"
        " these, which was used again)\n"
    )


@pytest.mark.parametrize("strategy", OTHERS)
def test_strategies_with_other_annotations(strategy: str) -> None:
    with elastalog.open(PATHS, {"edge": EDGES}, strategy=strategy) as db:
        db.apply({"edge": [(3, 1)]}, {"edge": [(6, 7)]})
        assert db.verify().is_exact
        db._backend.held.relations["far"].rows[0, 0] = 9
        assert db.verify().missing == {"far": 1}


@pytest.mark.parametrize("kind", LEVEL_KINDS)
def test_random_programs_are_exact_after_every_update(kind: Kind) -> None:
    for seed in range(20):
        program, steps = seeded_case(seed, EVERYTHING if kind == "local" else Features(negated_groups=True))
        with elastalog.open(program.text, facts=program.facts, levels=kind) as db:
            for update in [None, *steps]:
                if update is not None:
                    db.apply(update.inserted, update.deleted)
                assert db.verify().is_exact, (seed, db.verify())


@pytest.mark.parametrize("strategy", OTHERS)
def test_an_explicit_fact_that_recursion_derives_too_is_explicit_whatever_is_kept(strategy: str) -> None:
    """DRed^c keeps numbers of derivations in the place of levels: those of an explicit fact need not be 0."""
    program = ".decl p(x: number, y: number)\np(y, x) :- p(x, y), p(y, _).\n"
    with elastalog.open(program, {"p": [(3, 4)]}, strategy=strategy) as db:
        assert db.verify().is_exact
        db.apply({"p": [(4, 3)]}, {})
        assert set(db["p"]) == {(3, 4), (4, 3)}
        assert db.verify().is_exact
