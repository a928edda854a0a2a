"""A relation after changes, from its facts and the changes alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.relations.facts import FactWords
from elastalog.settings import SETTINGS
from elastalog.storage.manifest import Options
from elastalog.storage.snapshots import merged

FACTS = st.tuples(st.integers(-2, 3), st.integers(0, 3))
STATES = st.dictionaries(FACTS, st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=12)
CHANGES = st.lists(
    st.dictionaries(FACTS, st.none() | st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=8), max_size=4
)


@given(STATES, CHANGES)
@settings(max_examples=200, deadline=None)
def test_the_last_state_of_every_fact_stays(
    before: dict[tuple[int, int], tuple[int, int]],
    changes: list[dict[tuple[int, int], tuple[int, int] | None]],
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
    assert found.level is not None
    assert found.count is not None
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
