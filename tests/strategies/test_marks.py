"""What marks may and may not do (their results are compared with the reference elsewhere)."""

from __future__ import annotations

from typing import Any

import pytest

import elastalog
from elastalog.backends.sets import Facts, SetMaintenance, size
from elastalog.evaluation.strategies import dred
from elastalog.evaluation.strategies.marking import Marking
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.strategies.running import contents, pending

POSITIVE = Features(negation=False, aggregates=False)
SEEDS = range(10)


def of_inputs(update: Update, inputs: tuple[str, ...]) -> Update:
    """Only the changes of relations without rules."""
    return Update(
        {name: facts for name, facts in update.deleted.items() if name in inputs},
        {name: facts for name, facts in update.inserted.items() if name in inputs},
    )


def test_dred_over_deletes_the_same_facts_with_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    marked: list[int] = []
    original = dred.over_delete

    def over_delete(stratum: SetMaintenance, known: Facts, counters: Any) -> Facts:
        deleted = original(stratum, known, counters)
        sizes.append(size(deleted))
        marked.append(size(known))
        return deleted

    monkeypatch.setattr(dred, "over_delete", over_delete)
    used = 0
    for seed in (*SEEDS, 36):
        program, updates = seeded_case(seed, POSITIVE, 6)
        runs = []
        for is_announced in (False, True):
            sizes.clear()
            with elastalog.open(program.text, program.facts, strategy="dred") as db:
                prepared = [pending(db, of_inputs(update, program.inputs)) for update in updates]
                for number, update in enumerate(prepared):
                    if is_announced and number + 1 < len(prepared):
                        db.announce(prepared[number + 1], "eager")
                    update.commit()
                runs.append((list(sizes), contents(db, program.schemas)))
        assert runs[0] == runs[1], seed
        used += sum(marked)
    assert used, "no case had marks"


@pytest.mark.parametrize(("strategy", "marks"), [("dred", "eager"), ("bf", "linked"), ("bfc", "eager")])
def test_an_announced_update_need_not_come(strategy: str, marks: str) -> None:
    for seed in SEEDS:
        program, updates = seeded_case(seed, most_updates=6)
        with (
            elastalog.open(program.text, program.facts, strategy=strategy) as db,
            elastalog.open(program.text, program.facts, strategy="recompute") as plain,
        ):
            for number, update in enumerate(updates):
                db.announce(pending(db, updates[(number * 3 + seed) % len(updates)]), marks)
                pending(db, update).commit()
                pending(plain, update).commit()
                assert contents(db, program.schemas) == contents(plain, program.schemas), seed


@pytest.mark.parametrize("strategy", ["bf", "bfc", "bfc-pruned", "dred"])
def test_any_facts_may_be_marked(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every fact that the last update touched, of whatever kind, had been marked."""

    def everything(self: Marking, stratum: SetMaintenance) -> Facts:
        relations = stratum._relations  # type: ignore[attr-defined]
        rows = {
            name: relations[name].present_rows()[::2].copy() for name in stratum.own if not relations[name].touched_used
        }
        return stratum.facts_of_rows(rows)

    monkeypatch.setattr(Marking, "candidates", everything)
    for seed in SEEDS:
        program, updates = seeded_case(seed)
        with (
            elastalog.open(program.text, program.facts, strategy=strategy) as db,
            elastalog.open(program.text, program.facts, strategy="recompute") as plain,
        ):
            for update in updates:
                pending(db, update).commit()
                pending(plain, update).commit()
                assert contents(db, program.schemas) == contents(plain, program.schemas), seed
