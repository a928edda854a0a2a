"""Random programs with random updates: what was stored at an epoch is what was in memory, and it can be continued."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.session import Session
from elastalog.storage import state
from elastalog.storage.manifest import Options
from tests.generators.seeded import seeded_case
from tests.storage.scripted import LAST, expected_states, lived, state_of


def whole_state(session: Session) -> dict[str, Any]:
    """Levels and counts of all facts, hidden relations included, as the same words: ids must survive too."""
    state = {}
    for name in session._backend.program.relations:
        facts = session._backend.states.of(name)
        state[name] = sorted(np.column_stack((facts.words, facts.level, facts.count)).tolist())
    return state


WAYS = [
    ("elastic", "local"),
    ("elastic", "global"),
    *((strategy, "local") for strategy in ("recompute", "dense", "dred", "dredc", "bf", "bfc")),
]
"""`counting` is for programs without recursion: see below."""

JOURNALS = (1, 2, 100)
"""Epochs between snapshots: always one, every other time, never."""


def _mark(way: int, journal: int) -> tuple[pytest.MarkDecorator, ...]:
    """What is written does not depend on when: the first way has all journals in `make test`, another one each."""
    return () if not way or way % len(JOURNALS) == journal else (pytest.mark.long,)


@pytest.mark.parametrize(
    ("strategy", "levels", "journal_epochs"),
    [
        pytest.param(*WAYS[way], JOURNALS[journal], marks=_mark(way, journal))
        for way in range(len(WAYS))
        for journal in range(len(JOURNALS))
    ],
)
@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.long)])
def test_reopening_after_every_epoch(folder: Path, strategy: str, levels: str, journal_epochs: int, block: int) -> None:
    tried = 0
    for seed in range(block * 1000, block * 1000 + 6):
        program, updates = seeded_case(seed)
        path = folder / str(seed)
        with contextlib.suppress(elastalog.ElastalogError):
            session = elastalog.open(program.text, facts=program.facts, strategy=strategy, levels=levels)
            memory = elastalog.open(program.text, facts=program.facts, strategy=strategy, levels=levels)
            session._history.keep_in(path, Options(strategy, levels, journal_epochs=journal_epochs))
            tried += 1
            for update in updates:
                failed = [_apply(one, update.inserted, update.deleted) for one in (memory, session)]
                assert failed[0] == failed[1]
                before = whole_state(session)
                assert session.epoch == memory.epoch
                session.close()
                session = elastalog.open(store=path)
                assert whole_state(session) == before
                assert {name: set(session[name]) for name in session} == {name: set(memory[name]) for name in memory}
                assert session.verify().is_exact
            session.close()
    assert tried >= 4


def _apply(session: Session, inserted: dict[str, Any], deleted: dict[str, Any]) -> str:
    try:
        session.apply(inserted, deleted)
    except elastalog.ElastalogError as error:
        return error.diagnostics[0].code
    return ""


def test_words_without_columns_and_all_base_types(folder: Path) -> None:
    text = """.decl flag()
    .decl value(n: number, u: unsigned, f: float, s: symbol)
    .decl seen()
    seen() :- flag(), value(_, _, _, _)."""
    rows = [(-(2**62), 2**63 + 5, 0.1, "é\x00\n"), (5, 6, float("inf"), ""), (2**30, 2**30, -0.0, '"')]
    with elastalog.open(text, store=folder / "store") as session:
        session.apply({"flag": [()], "value": rows})
    with elastalog.open(store=folder / "store") as session:
        assert list(session["seen"]) == [()]
        assert set(session["value"]) == {*rows}
        session.apply({}, {"flag": [()]})
        assert list(session["seen"]) == []
    with elastalog.open(store=folder / "store") as session:
        assert list(session["flag"]) == []


def test_the_dictionary_is_stored_in_few_parts(folder: Path) -> None:
    session = elastalog.open(".decl word(s: symbol, f: float)")
    session._history.keep_in(folder / "store", Options(journal_epochs=1))
    expected = set()
    for number in range(64):
        session.apply({"word": [(f"word {number}", number / 7)]})
        expected.add((f"word {number}", number / 7))
    session.close()
    assert len(list((folder / "store" / "dictionary").glob("symbols-*"))) <= 7
    with elastalog.open(store=folder / "store") as session:
        assert set(session["word"]) == expected


def test_unchanged_relations_are_not_written_again(folder: Path) -> None:
    with elastalog.open(".decl a(x: number)\n.decl b(x: number)", facts={"a": [(1,)]}) as session:
        session._history.keep_in(folder / "store", Options(journal_epochs=1, retention=0))
        for number in range(5):
            session.apply({"b": [(number,)]})
    assert {path.name for path in (folder / "store" / "facts").iterdir()} == {"0-a-1.parquet", "1-b-6.parquet"}


@pytest.mark.parametrize("part", ["facts", "dictionary"])
def test_the_files_of_a_large_store_are_read_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    store = lived(folder / "store")
    monkeypatch.setattr(state, "LARGE", 0)
    with elastalog.open(store=store) as session:
        assert state_of(session) == expected_states()[LAST]
    for file in (store / part).iterdir():
        file.write_bytes(b"")
    with pytest.raises(elastalog.ElastalogError, match="E0805"):
        elastalog.open(store=store)
