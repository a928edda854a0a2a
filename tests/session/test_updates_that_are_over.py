"""An update is one epoch: once committed or dropped, it takes nothing any more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

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


def test_an_update_that_nobody_commits_is_told_of(tmp_path: Path) -> None:
    """What is only asked about, left by an exception or empty may go in silence; the rest warns, at the end too."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import elastalog\n\ndb = elastalog.open({PROGRAM!r})\nleft = db.update()\nleft.insert('edge', [(1, 2)])\n"
        "def forget(used):\n    update = db.update()\n    update.add_rules('path(x, x) :- edge(x, _).')\n"
        "    used or db.preview(update)\nforget(1)\nforget(0)\ndb.update()\n"
        "try:\n    with db.update() as failing:\n        failing.insert('edge', [(5, 6)])\n"
        "        failing.insert('edges', [(5, 6)])\nexcept elastalog.ElastalogError:\n    pass\n"
        "with db.update() as done:\n    done.insert('edge', [(7, 8)])\nprint(len(db['edge']))\n"
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"
    assert found.stderr.count("E0626") == 2
    assert "script.py:10: FindingWarning" in found.stderr
    assert "nothing of it happened (`path(x, x) :- edge(x, _).`)" in found.stderr
    assert "nothing of it happened (`edge`)\n  = help: write `with db.update() as u:`" in found.stderr
