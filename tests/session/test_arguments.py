"""Slips in calls from Python: arguments that are something else than they must be get an error that says what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.session import Session
from tests.closures import CLOSURE as PROGRAM


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = tmp_path_factory.mktemp("stores") / "store"
    with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}, store=store) as session:
        session.apply({"edge": [(3, 4)]})
        yield session


def opened(**options: Any) -> Callable[[Session], object]:
    return lambda _: elastalog.open(PROGRAM, **options)


LONG, MANY = "'qqqqqqqqqqqq...qqqqqqqqqqqqq'", "a number of many digits"
SLIPS: list[tuple[Callable[[Session], object], str, str]] = [
    (lambda db: elastalog.open(1), "E0617", "a program is a path, a text, or a `Program`, not 1 (int)"),
    (lambda db: elastalog.Program.parse(Path("a.dl")), "E0617", "a program text is a text, not PosixPath('a.dl')"),
    (lambda db: elastalog.Program.load(None), "E0617", "a program file is named by its path, not None"),
    (opened(facts=[(1, 2)]), "E0617", "facts are a folder or a mapping, not [(1, 2)] (list)"),
    (opened(store=1), "E0617", "a store is a folder, not 1 (int)"),
    (opened(bad_rows=elastalog.BadRows(folder=b"x")), "E0617", "`folder` is a path, not b'x' (bytes)"),
    (opened(store="a\0b"), "E0617", "a store is a folder, and no file can have the name 'a\\x00b'"),
    (opened(facts="a\ud800"), "E0617", "facts are a folder or a mapping, and no file can have the name 'a\\ud800'"),
    (
        opened(bad_rows=elastalog.BadRows(folder="q" * 999)),
        "E0617",
        f"`folder` is a path, and no file can have the name {LONG}",
    ),
    (opened(libraries=["a\0b"]), "E0617", "a library is a file, and no file can have the name 'a\\x00b'"),
    (lambda db: db.backup("a\0b"), "E0617", "a copy of a store is a folder, and no file can have the name 'a\\x00b'"),
    (lambda d: d.apply("q" * 999), "E0617", f"a diff file is named by its path, and no file can have the name {LONG}"),
    (lambda db: db.update("a\ud800"), "E0617", "`source` and `batch` are short texts, not ('a\\ud800', None) (tuple)"),
    (lambda db: db.update("s", 10**5000), "E0617", f"`source` and `batch` are short texts, not {MANY} (tuple)"),
    (lambda db: db.apply({"edge": [(1, 10**5000)]}), "E0503",
     "row 1 given for `edge`: int of more digits than are shown does not fit number `y`"),
    (opened(on_progress="x"), "E0617", "`on_progress` is a function, not 'x' (str)"),
    (opened(spark="local"), "E0617", "`spark` is a Spark session, not 'local' (str)"),
    (opened(strategy=1), "E0612", "`1` is not a known strategy"),
    (opened(levels="globl"), "E0612", "`globl` is not a known value of `levels`"),
    (lambda db: db.suggest(unwanted=["path(1, 4)"], over="fact"), "E0612", "`fact` is not a known value of `over`"),
    (opened(metric=["size"]), "E0612", "`['size']` is not a known metric"),
    ((lambda _: elastalog.Store(retention="9")), "E0612", "`retention` cannot be '9'"),
    (opened(bad_rows=elastalog.BadRows("skip", None)), "E0612", "`most` cannot be None"),
    ((lambda _: elastalog.Store(at=1)), "E0612", "`at` is for stores"),
    ((lambda _: elastalog.Store(read_only=True)), "E0612", "`read_only` is for stores"),
    (lambda db: db[1], "E0617", "a relation is named by a text, not 1 (int)"),
    (lambda db: db[["path"]], "E0617", "a relation is named by a text, not ['path'] (list)"),
    (lambda db: db.explicit(None), "E0617", "a relation is named by a text, not None"),
    (lambda db: db["path"].head("1"), "E0612", "`number` cannot be '1'"),
    (lambda db: db.query(("path", (1, 4))), "E0617", "a query is a text, not ('path', (1, 4)) (tuple)"),
    (lambda db: db.explain(("p", 1)), "E0617", "a fact is a text, or a relation and its values, not ('p', 1) (tuple)"),
    (lambda db: db.explain(1), "E0617", "a fact is a text, or a relation and its values, not 1 (int)"),
    (lambda db: db.explain("path(1, 4)", depth="2"), "E0708", "'2' is not a depth"),
    (lambda db: db.explain("path(1, 4)", 1).expand((0,), -1), "E0708", "-1 is not a depth"),
    (lambda db: db.explain("path(1, 4)").expand(0), "E0617", "a path in a proof is a row of numbers, not 0 (int)"),
    (lambda db: db.explain("path(1, 4)").at("0"), "E0617", "a path in a proof is a row of numbers, not '0' (str)"),
    (lambda db: list(db.proofs("path(1, 4)", limit="2")), "E0612", "`limit` cannot be '2'"),
    (lambda db: db.why_not("path(4, 1)", limit=None), "E0612", "`limit` cannot be None"),
    (lambda db: db.why_not("path(4, 1)", rule="2"), "E0612", "`rule` cannot be '2'"),
    (lambda db: db.why_not("path(4,1)", bindings=3), "E0617", "`bindings` are values by variable, not 3 (int)"),
    (lambda db: db.why_not("path(4, 1)", bindings={"y": 2**70}), "E0711", "`y` is a number"),
    (lambda db: db.why_not("path(4, 1)", bindings={"y": 1.5}), "E0711", "`y` is a number"),
    (lambda db: db.why_not("path(4, 1)", bindings={"z": np.bool_(True)}), "E0711", "`z` is a number"),
    (lambda db: db.why_not("path(4, 1)", bindings={"x": np.array([1])}), "E0711", "`x` is a number"),
    (lambda db: db.why_not("path(4, 1)").expand("0"), "E0617", "a position is a number, not '0' (str)"),
    (lambda db: db.at("1"), "E0617", "an epoch is a number, or the one in force at a time, not '1' (str)"),
    (lambda db: db.at(1.5), "E0617", "an epoch is a number, not 1.5 (float)"),
    (lambda db: db.at(True), "E0617", "an epoch is a number, not True (bool)"),
    (lambda db: db.diff(None), "E0617", "an epoch is a number, not None"),
    (lambda db: db.engine.changed_rules("1", 2), "E0617", "an epoch is a number, not '1' (str)"),
    (lambda db: db.blame(3), "E0617", "a fact is a text, or a relation and its values, not 3 (int)"),
    (lambda db: db.suggest(unwanted=3), "E0617", "unwanted facts are given in a list, not 3 (int)"),
    (lambda db: db.localise(missing=[3]), "E0617", "a fact is a text, or a relation and its values, not 3 (int)"),
    (lambda db: db.suggest(["path(3, 4)"], epochs=2), "E0617", "`epochs` are two numbers, not 2 (int)"),
    (lambda db: db.suggest(["path(3, 4)"], rejected=1), "E0617", "rejected elements are given in a list, not 1 (int)"),
    (lambda db: db.suggest(["path(3, 4)"], weights=[1]), "E0617", "weights are numbers by element, not [1] (list)"),
    (lambda db: db.suggest(["path(3, 4)"], time_limit="1s"), "E0612", "`time_limit` cannot be '1s'"),
    (lambda db: db.forecast([1]), "E0617", "inserted facts are a mapping from relations to rows, not [1] (list)"),
    (lambda db: db.apply({}, "edge"), "E0617", "deleted facts are a mapping from relations to rows, not 'edge' (str)"),
    (lambda db: db.update(source=1), "E0617", "`source` is a text, not 1 (int)"),
    (lambda db: db.update("s", batch=[1]), "E0617", "`batch` is a text or a number, not [1] (list)"),
    (lambda db: db.update().insert(["edge"], []), "E0617", "a relation is named by a text, not ['edge'] (list)"),
    (lambda db: db.update().read(1), "E0617", "a diff file is named by its path, not 1 (int)"),
    (lambda db: db.change_rules(removed=1.5), "E0617", "rules to remove are numbers or texts, not 1.5 (float)"),
    (lambda db: db.change_rules(removed=""), "E0616", "`` is not the text of a rule"),
    (lambda db: db.apply({})[1], "E0617", "a relation is named by a text, not 1 (int)"),
    (lambda db: db.apply({})["paht"], "E0606", "there is no relation `paht`"),
    (lambda db: db.engine.announce("x"), "E0617", "what is announced is an update, not 'x' (str)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "code", "message"), SLIPS, ids=[message for _, _, message in SLIPS])
def test_slips(db: Session, call: Callable[[Session], object], code: str, message: str) -> None:
    with pytest.raises(elastalog.ElastalogError) as raised:
        call(db)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == (code, message)
    assert found.help
    assert isinstance(raised.value, TypeError) == (code == "E0617")


def test_what_is_nearly_right_is_understood(db: Session) -> None:
    assert db.engine.fact(("path", [1, 4])) == ("path", (1, 4))
    assert [type(value) for value in db.engine.fact(("path", (np.int64(1), np.uint8(4))))[1]] == [int, int]
    assert str(db.explain(("path", (np.int64(1), np.uint8(4))))) == str(db.explain("path(1, 4)"))
    assert (np.int64(1), np.uint8(4)) in db["path"]
    why_not = db.why_not("path(4, 1)", rule=np.int64(2), bindings={"y": np.int64(3)})
    assert str(why_not) == str(db.why_not("path(4, 1)", rule=2, bindings={"y": 3}))
    assert [str(e) for e in db.suggest(unwanted=("path", (3, 4)), epochs=[1, 2]).elements] == ["+edge(3, 4)"]
    assert db.engine.is_applied("s", 7) is False
    changes = db.apply({})
    assert ("path" in changes, "paht" in changes, 1 in changes, changes.get("paht")) == (True, False, False, None)


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))])
def test_times_at_the_ends_of_the_calendar_are_times(db: Session, zone: timezone | None) -> None:
    assert db.engine.epoch_at(datetime.max.replace(tzinfo=zone)) == db.epoch
    for call in (db.engine.epoch_at, db.at):
        with pytest.raises(elastalog.ElastalogError, match=r"E0813.*there was no epoch at 0*1-01-01 00:00:00"):
            call(datetime.min.replace(tzinfo=zone))


def test_rows_that_were_refused_leave_the_update_as_it_was(db: Session) -> None:
    update = db.update()
    for change in (update.insert, update.delete):
        with pytest.raises(elastalog.ElastalogError, match="E0502"):
            change("edge", [("a", 1)])
    assert len(update.commit()) == 0
