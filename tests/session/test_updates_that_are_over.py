"""An update is one epoch: once committed or dropped, it takes nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import elastalog
from elastalog import ElastalogError, PendingUpdate, Session

PROGRAM = """
.decl edge, path(x: number, y: number)
path(x, y) :- edge(x, y).
"""


@pytest.fixture
def db() -> Iterator[Session]:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as session:
        yield session


USES: list[Callable[[Session, PendingUpdate], object]] = [
    lambda db, update: update.insert("edge", [(7, 8)]),
    lambda db, update: update.delete("edge", [(1, 2)]),
    lambda db, update: update.add_rules("path(y, x) :- edge(x, y)."),
    lambda db, update: update.remove_rules(1),
    lambda db, update: update.commit(),
    lambda db, update: db.preview(update),
    lambda db, update: db.forecast(update),
    lambda db, update: db.engine.announce(update, "auto"),
]


@pytest.mark.parametrize("use", USES)
def test_a_committed_update_takes_nothing(db: Session, use: Callable[[Session, PendingUpdate], object]) -> None:
    with db.update() as update:
        update.insert("edge", [(2, 3)])
    with pytest.raises(ElastalogError, match=r"E0620\]: the update has been committed already"):
        use(db, update)
    assert sorted(update.changes["path"].inserted) == [(2, 3)]
    assert (db.epoch, sorted(db["edge"])) == (2, [(1, 2), (2, 3)])


@pytest.mark.parametrize("use", USES)
def test_a_dropped_update_takes_nothing(db: Session, use: Callable[[Session, PendingUpdate], object]) -> None:
    with suppress(ZeroDivisionError), db.update() as update:
        update.insert("edge", [(2, 3)])
        raise ZeroDivisionError
    with pytest.raises(ElastalogError, match=r"E0620\]: the update was dropped when an exception left"):
        use(db, update)
    assert (db.epoch, sorted(db["edge"])) == (1, [(1, 2)])


def test_a_commit_within_the_block_is_the_only_one(db: Session) -> None:
    with db.update() as update:
        update.insert("edge", [(2, 3)])
        update.commit()
    assert sorted(update.changes["path"].inserted) == [(2, 3)]
    assert update.stats.epoch == 2


def test_a_repeated_batch_is_over_too(db: Session) -> None:
    db.apply({"edge": [(2, 3)]}, source="s", batch=1)
    with db.update("s", 1) as update:
        update.insert("edge", [(2, 3)])
    with pytest.raises(ElastalogError, match="E0620"):
        update.insert("edge", [(4, 5)])


def test_an_update_whose_commit_failed_may_be_committed_again() -> None:
    divisors = [0, 1]
    program = ".functor f(x: number): number\n.decl a(x: number)\n.decl b(x: number)\nb(@f(x)) :- a(x)."
    with elastalog.open(program, functors={"f": lambda x: x // divisors.pop(0)}) as db:
        update = db.update()
        with pytest.raises(ElastalogError, match="E0640"), update:
            update.insert("a", [(1,)])
        assert sorted(update.commit()["b"].inserted) == [(1,)]
