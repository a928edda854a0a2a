"""A relation after changes, from its facts and the changes alone."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.backends.rows import merged
from elastalog.diagnostics.quota import resident_bytes
from elastalog.evaluation.stored import DurableEpochs
from elastalog.relations.facts import FactWords
from elastalog.settings import SETTINGS
from elastalog.storage.manifest import Options
from tests.storage.scripted import state_of

FACTS = st.tuples(st.integers(-2, 3), st.integers(0, 3))
STATES = st.dictionaries(FACTS, st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=12)
CHANGES = st.lists(
    st.dictionaries(FACTS, st.none() | st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=8), max_size=4
)


@given(STATES, CHANGES)
@settings(max_examples=200, deadline=None)
def test_the_last_state_of_every_fact_stays(
    before: dict[tuple[int, int], tuple[int, int]], changes: list[dict[tuple[int, int], tuple[int, int] | None]]
) -> None:
    expected = dict(before)
    steps = []
    for change in changes:
        was = [expected.get(fact, (GONE, 0))[0] for fact in change]
        now = [(GONE, 0) if state is None else state for state in change.values()]
        steps.append(
            StateChanges(
                np.array(list(change), np.int32).reshape(-1, 2), np.array(was, np.int32),
                np.array([level for level, _ in now], np.int32), np.array([count for _, count in now], np.int32),
            )
        )  # fmt: skip
        for fact, state in change.items():
            expected.pop(fact, None)
            if state is not None:
                expected[fact] = state
    levels, counts = (np.array([state[i] for state in before.values()], np.int32) for i in (0, 1))
    found = merged(FactWords(np.array(list(before), np.int32).reshape(-1, 2), levels, counts), steps)
    facts = list(map(tuple, found.words.tolist()))
    assert len(set(facts)) == len(facts)
    assert dict(zip(facts, zip(found.level.tolist(), found.count.tolist(), strict=True), strict=True)) == expected


@pytest.mark.parametrize("few", [0, 3, 1 << 16])
def test_symbols_come_back_in_whatever_form_they_were(folder: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(SETTINGS, "few_texts", few)
    words = [f"word {number}" for number in range(8)]
    session = elastalog.open(".decl word(s: symbol)\n.decl long(s: symbol)\nlong(cat(s, s)) :- word(s).")
    session._history.keep_in(folder / "store", Options(journal_epochs=3))
    for epoch, word in enumerate(words, 2):
        session.apply({"word": [(word,), ("",)]})
        session.close()
        for other in (few, 5):  # written in one form, read in another
            monkeypatch.setattr(SETTINGS, "few_texts", other)
            session = elastalog.open(store=folder / "store")
            assert (session.epoch, set(session["word"])) == (epoch, {("",), *((w,) for w in words[: epoch - 1])})
            assert set(session["long"]) == {("",), *((w + w,) for w in words[: epoch - 1])}
            assert (word,) in session["word"]
            session.close()
        session = elastalog.open(store=folder / "store")
    session.close()


# --- a long life: memory, disk and the time to open stay bounded, and the state stays the fixpoint --------------------


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
