"""An internal mistake, put in on purpose at every stage of an update: it is told as one, the epoch before stands, and
the next update is right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.execution.aggregates import Folding
from elastalog.backends.kernel.levels.scheduler import StratumUpdate, UpdateScheduler
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.maintenance import KernelMaintenance
from elastalog.backends.kernel.sets.set_update import StratumSets
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.updates import KernelUpdates
from elastalog.diagnostics.diagnostic import InternalError
from tests.closures import CLOSURE
from tests.engine.judging import Facts, facts_of
from tests.forcing import forced

PROGRAM = f"""{CLOSURE}.decl reached(x: number, n: number)
reached(x, n) :- edge(x, _), n = count : {{ path(x, _) }}.
.decl hidden(x: number)
hidden(x) :- edge(_, x), !path(x, 7).
"""
FACTS = {"edge": [(i, i + 1) for i in range(20)] + [(3, 9), (12, 2)], "path": [(40, 3)]}
DELETED = {"edge": [(4, 5), (12, 2)], "path": [(40, 3)]}
INSERTED = {"edge": [(30, 0), (19, 25)], "path": [(41, 41)]}

STAGES: list[tuple[Any, str]] = [
    (KernelUpdates, "begin"),
    (UpdateScheduler, "begin_update"),
    (KernelMaintenance, "affected"),
    (UpdateScheduler, "set_out"),
    (UpdateScheduler, "change"),
    (UpdateScheduler, "give"),
    (UpdateScheduler, "go_on"),
    (UpdateScheduler, "_lay_out"),
    (UpdateScheduler, "collect"),
    (MachinePlan, "refresh"),
    (MachineRun, "run"),
    (MachineRun, "serve"),
    (StratumUpdate, "update"),
    (StratumUpdate, "end"),
    (StratumSets, "heads"),
    (StratumSets, "propagate"),
    (StratumSets, "end"),
    (KernelRelation, "index"),
    (KernelRelation, "reserve"),
    (KernelRelation, "reserve_touched"),
    (KernelRelation, "extend_indexes"),
    (Index, "extend"),
    (Folding, "refold"),
    (rebuild, "adopt"),
    (rebuild, "successor"),
]


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dense", "bfc"])
@pytest.mark.parametrize(("owner", "name"), STAGES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_epoch_before_stands(monkeypatch: pytest.MonkeyPatch, strategy: str, owner: Any, name: str) -> None:
    calls = _calls_of(owner, name, strategy)
    for number in {0, calls - 1} if calls else ():
        with forced(first_rows=1, first_changes=1), elastalog.open(PROGRAM, facts=FACTS, strategy=strategy) as db:
            before = facts_of(db)
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, _failing(getattr(owner, name), number))
                with pytest.raises(InternalError, match=r"in an update: KeyError: .*; epoch 1 stands"):
                    db.apply(INSERTED, DELETED)
            assert facts_of(db) == before
            assert db.epoch == 1
            db.apply(INSERTED, DELETED)
            assert facts_of(db) == _after()


@cache
def _after() -> Facts:
    facts = {name: sorted({*facts, *INSERTED[name]} - {*DELETED[name]}) for name, facts in FACTS.items()}
    with elastalog.open(PROGRAM, facts=facts, strategy="dense") as fresh:
        return facts_of(fresh)


def _calls_of(owner: Any, name: str, strategy: str) -> int:
    """How often an update comes to a stage."""
    calls = 0
    usual = getattr(owner, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return usual(*arguments, **options)

    settings, patched = forced(first_rows=1, first_changes=1), pytest.MonkeyPatch.context()
    with settings, elastalog.open(PROGRAM, facts=FACTS, strategy=strategy) as db, patched as patch:
        patch.setattr(owner, name, counting)
        db.apply(INSERTED, DELETED)
    return calls


def _failing(usual: Callable[..., Any], number: int) -> Callable[..., Any]:
    """What fails when it is called for the time of a number, and never again: what ends the update may call it too."""
    left = [number]

    def fails(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise KeyError("put in on purpose")
        return usual(*arguments, **options)

    return fails
