"""A long life: memory, disk and the time to open stay bounded, and the state stays the fixpoint."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import elastalog
from elastalog.diagnostics.quota import resident_bytes
from elastalog.evaluation.stored import DurableEpochs
from tests.storage.scripted import state_of

PROGRAM = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl end(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
end(y) :- edge(_, y), !edge(y, _)."""

NODES = 12


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_thousands_of_epochs(folder: Path, monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    monkeypatch.setattr(DurableEpochs, "in_background", True)
    rng = random.Random(20261115)
    path = folder / "store"
    facts: set[tuple[int, int]] = set()
    session = elastalog.open(PROGRAM, store=elastalog.Store(path, heartbeats=True, retention=epochs // 10))
    sizes, memory, opening = [], [], []
    for number in range(1, epochs + 1):
        come = {(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(rng.randrange(3))}
        go = set(rng.sample(sorted(facts), min(len(facts), rng.randrange(3)))) if len(facts) > 8 else set()
        session.apply({"edge": sorted(come)}, {"edge": sorted(go)}, source="random", batch=number)
        facts = (facts - go) | come
        if number % (epochs // 20) == 0:
            assert state_of(session) == state_of(elastalog.open(PROGRAM, facts={"edge": sorted(facts)}))
            session.close()
            began = time.process_time()
            session = elastalog.open(store=elastalog.Store(path, heartbeats=True))
            opening.append(time.process_time() - began)
            assert session.epoch == number + 1
            assert set(session["edge"]) == facts
            sizes.append(sum(file.stat().st_size for file in path.rglob("*") if file.is_file()))
            memory.append(resident_bytes())
    session.close()
    # The first quarter of the epochs fills the history up to its retention.
    assert max(sizes[5:]) < 2 * max(sizes[:5])
    assert max(memory[5:]) < max(memory[:5]) + (64 << 20)
    assert sorted(opening)[len(opening) // 2] < 1.0
    assert sorted(opening[10:])[5] < 3 * sorted(opening[:10])[5] + 0.05
