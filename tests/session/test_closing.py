"""The end of a session."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import pytest

import elastalog
from elastalog.settings import SETTINGS
from tests.closures import CLOSURE as PROGRAM


def test_closing_waits_for_what_another_thread_does(tmp_path: Path) -> None:
    db = elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}, store=tmp_path / "store")
    closing = threading.Thread(target=db.close)
    with db.engine.exclusively():
        closing.start()
        closing.join(0.2)
        assert closing.is_alive()
        db.apply({"edge": [(3, 4)]})
    closing.join()
    with pytest.raises(elastalog.ElastalogError, match="E0814"):
        db.apply({"edge": [(4, 5)]})
    with elastalog.open(store=tmp_path / "store") as again:
        assert (again.epoch, (1, 4) in again["path"]) == (2, True)


# --- sessions that are no longer referred to leave nothing behind, without garbage collection -------------------------


MANY_KINDS = """
.decl e, p(x: symbol, y: symbol)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
.decl far(x: symbol, n: number)
far(x, n) :- e(x, _), n = count : { p(x, _) }.
.decl same(x: symbol, y: symbol) eqrel
same(x, y) :- e(x, y).
.decl steps(x: symbol, n: number)
steps("a", 0).
steps(y, n + 1) :- steps(x, n), e(x, y).
steps(x, n) <= steps(x, m) :- m <= n.
.decl first(x: symbol, y: symbol) choice-domain x
first(x, y) :- e(x, y), !e(y, x).
"""


@pytest.mark.parametrize("strategy", ["elastic", "dense", "dred", "dredc", "bf", "bfc", "recompute"])
@pytest.mark.parametrize("few_texts", [0, 1000])
def test_what_a_session_held_is_given_back_at_once(
    strategy: str, few_texts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "few_texts", few_texts)
    gc.collect()
    gc.disable()
    try:
        with elastalog.open(MANY_KINDS, {"e": [("a", "b"), ("b", "c")]}, strategy=strategy) as db:
            db.apply({"e": [("c", "d")]})
            db.apply(deleted={"e": [("a", "b")]})
            db.preview({"e": [("a", "b")]})
            assert len(db.query('p("b", X)')) == 2
            held = db._materialisation.backend.held.relations["p"]
            kept = [weakref.ref(one) for one in (held, held.rows, db._materialisation.dictionary.symbols._lock)]
        del db, held
        assert [one() for one in kept] == [None] * len(kept)
    finally:
        gc.enable()


def test_what_was_asked_leaves_nothing_behind_either() -> None:
    questions = [
        lambda db: str(db.explain('p("a", "c")')),
        lambda db: str(db.why_not('p("c", "a")')),
        lambda db: str(db.why_not('p("c", X)')),
        lambda db: str(db.explain('same("a", "c")')),
        lambda db: db.derivations('p("a", "c")'),
        lambda db: list(db.proofs('p("a", "c")')),
        lambda db: db.uses('e("a", "b")', all=True),
        lambda db: str(db.suggest(unwanted=['p("a", "c")'])),
        lambda db: str(db.blame('p("a", "c")')),
        lambda db: db.prepare("p(?x, ?y)")("a", "c", explain=True),
    ]
    gc.collect()
    gc.disable()
    try:
        for number, ask in enumerate(questions):
            with elastalog.open(MANY_KINDS, {"e": [("a", "b")]}, strategy="elastic") as db:
                db.apply({"e": [("b", "c")]})
                ask(db)
                db.apply({"e": [("c", "d")]})
                ask(db)
                held = weakref.ref(db._materialisation)
            del db
            assert held() is None, number
    finally:
        gc.enable()


def test_a_proof_can_be_expanded_when_its_session_is_no_longer_referred_to() -> None:
    with elastalog.open(MANY_KINDS, {"e": [("a", "b"), ("b", "c")]}) as db:
        proof = db.explain('p("a", "c")', depth=1)
    whole = str(db.explain('p("a", "c")'))
    del db
    assert str(proof.expand()) == whole
