"""The client gives what the session gives."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import elastalog
from elastalog import Branch, ElastalogError
from elastalog.deprecated import ONLY_OF_SESSIONS
from tests.refusals import refused
from tests.tables import table
from tests.web.api.conftest import FACTS, READ_TOKEN, TOKEN, Running

PATHS = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_relations_are_as_the_session_has_them(running: Running) -> None:
    db = running.connect()
    assert list(db) == ["edge", "path", "label", "named"]
    assert sorted(db["path"]) == PATHS
    assert len(db["path"]) == 6
    assert (1, 4) in db["path"]
    assert (4, 1) not in db["path"]
    assert db["path"].schema == running.session["path"].schema
    assert db["path"].to_arrow(annotations=True).sort_by("@level").column("@level").to_pylist() == [1, 1, 1, 2, 2, 3]
    assert list(db["label"].local()) == [(1, "one")]
    assert sorted(pa.table(db["path"]).column("to").to_pylist()) == [2, 3, 3, 4, 4, 4]


def test_parts_of_a_relation_are_filtered_and_ordered_by_the_service(running: Running) -> None:
    path = running.connect()["path"]
    assert list(path.local(where="from < 3, !edge(from, to)", order="-to,from")) == [(1, 4), (2, 4), (1, 3)]
    assert list(path.local(order="from,-to", offset=1, limit=2)) == [(1, 3), (1, 2)]


def test_queries_take_parameters(running: Running) -> None:
    found = running.connect().query("path(?a, X), X > ?least", a=1, least=2)
    assert sorted(found) == [(3,), (4,)]
    assert found.schema.names == ("X",)


def test_an_update_is_an_epoch_with_its_changes(running: Running) -> None:
    db = running.connect()
    changes = db.apply({"edge": [(4, 5)]}, {"label": [(1, "one")]})
    assert db.epoch == 2
    assert sorted(changes["path"].inserted) == [(1, 5), (2, 5), (3, 5), (4, 5)]
    assert list(changes["named"].deleted) == [("one",)]
    assert changes.impact == 7
    with db.update(source="notebook") as update:
        update.delete("edge", [(1, 2)])
        update.add_rules(".decl far(x: number)\nfar(x) :- path(2, x), !edge(2, x).")
    assert sorted(update.changes["far"].inserted) == [(4,), (5,)]
    assert sorted(db["far"]) == [(4,), (5,)]
    assert [entry.source for entry in db.log()] == [None, None, "notebook"]


def test_a_committed_update_takes_nothing(running: Running) -> None:
    db = running.connect()
    with db.update() as update:
        update.insert("edge", [(4, 5)])
    for use in (lambda: update.delete("edge", [(4, 5)]), lambda: update.add_rules("named(x) :- label(_, x)."),
                lambda: update.remove_rules(1), update.commit):  # fmt: skip
        with pytest.raises(ElastalogError, match="E0620"):
            use()
    assert db.epoch == 2


def test_an_answer_warns_of_what_an_update_has_not_done(running: Running) -> None:
    db = running.connect()
    for call in (db.preview, db.apply):
        with pytest.warns(UserWarning, match="E0625.*path.* cannot be deleted"):
            call(deleted={"path": [(1, 2)]})


def test_a_preview_changes_nothing(running: Running) -> None:
    db = running.connect()
    gone = db.preview(deleted={"edge": [(2, 3)]})
    assert sorted(gone["path"].deleted) == [(1, 3), (1, 4), (2, 3), (2, 4)]
    new = db.preview(added=".decl loop(x: number)\nloop(x) :- path(x, y), y > 3.")
    assert sorted(new["loop"].inserted) == [(1,), (2,), (3,)]
    assert db.epoch == 1


def test_an_epoch_is_taken_back(running: Running) -> None:
    db = running.connect()
    db.apply({"edge": [(4, 5)]}, {"edge": [(1, 2)]})
    db.change_rules("named(t) :- label(_, t), path(9, _).", removed=3)
    assert (sorted(db["named"]), db.program.checked.rules[-1].text) == ([], "named(t) :- label(_, t), path(9, _).")
    assert sorted(db.preview(undo=2)["edge"].inserted) == [(1, 2)]
    assert db.epoch == 3
    assert sorted(db.apply(undo=2)["path"].deleted) == [(2, 5), (3, 5), (4, 5)]
    assert sorted(db["path"]) == PATHS
    assert list(db.apply(undo=db.log()[2], source="me")["named"].inserted) == [("one",)]
    assert "path(9, _)" not in db.program.tree.source.text
    db.apply(undo=db.epoch)
    assert sorted(db["named"]) == []
    assert (db.epoch, db.log()[-2].source) == (6, "me")
    with refused("E0617"):
        db.apply({"edge": [(4, 5)]}, undo=2)
    with refused("E0617"):
        db.preview(removed=1, undo=2)


def test_what_cannot_be_undone_is_told(running: Running) -> None:
    db = running.connect()
    with refused("E1004"):
        db.apply(undo=1)
    db.apply({"edge": [(4, 5)]})
    for epoch in (1, 3):
        with refused("E1004", match="give epoch 2"):
            db.apply(undo=epoch)
        with refused("E1004"):
            db.preview(undo=epoch)
    for wrong in ("2", 2.0, True):
        with refused("E0617"):
            db.apply(undo=wrong)  # type: ignore[arg-type]
    with refused("E0814"):
        db.at(1).apply(undo=2)
    with refused("E0924"):
        running.connect(READ_TOKEN).apply(undo=2)


def test_epochs_are_named_as_for_a_session(running: Running) -> None:
    db = running.connect()
    db.apply({"edge": [(4, 5)]})
    first, second = (entry.time for entry in db.log())
    local = first.astimezone().replace(tzinfo=None)
    for moment in (1, np.int64(1), first, local, first.isoformat(), str(local), f"{first:%Y-%m-%dT%H:%M:%S.%fZ}"):
        past = db.at(moment)
        assert (past.epoch, len(past["edge"])) == (running.session.at(moment).epoch, 3)
    tomorrow = date.today() + timedelta(days=1)
    for moment in (second, tomorrow, str(tomorrow)):
        assert db.at(moment).epoch == running.session.at(moment).epoch == 2


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(3.0, "E0617"), ("yesterday", "E0617"), ("1", "E0617"), (None, "E0617"), (True, "E0617"), ([1], "E0617"),
     (date(2001, 2, 3), "E0813"), ("2001-02-03T04:05:06Z", "E0813"), (9, "E0813"), (-1, "E0813")],
)  # fmt: skip
def test_no_epochs_are_refused_as_by_a_session(running: Running, epoch: Any, code: str) -> None:
    db = running.connect()
    for one in (db, running.session):
        with refused(code):
            one.at(epoch)
    if code == "E0617" and not isinstance(epoch, str):
        for ask in (db.diff, running.session.diff):
            with refused("E0617"):
                ask(epoch, 1)


def test_rows_may_be_in_files_here(running: Running, tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("from,to\n4,5\n5,6\n")
    (tmp_path / "label.facts").write_text("2\ttwo\n")
    db = running.connect()
    assert sorted(db.preview({"edge": tmp_path / "edge.csv"})["edge"].inserted) == [(4, 5), (5, 6)]
    changes = db.apply({"edge": str(tmp_path / "edge.csv"), "label": tmp_path / "label.facts"})
    assert (sorted(changes["edge"].inserted), sorted(db["label"])) == ([(4, 5), (5, 6)], [(1, "one"), (2, "two")])
    with db.update() as update:
        update.delete("edge", tmp_path / "edge.csv")
    assert sorted(db["edge"]) == [(1, 2), (2, 3), (3, 4)]
    (tmp_path / "bad.csv").write_text("7,8\n9,nine\n")
    for given in (tmp_path / "bad.csv", tmp_path / "not-there.csv"):
        with pytest.raises(ElastalogError) as ours:
            db.apply({"edge": given})
        with pytest.raises(ElastalogError) as theirs:
            running.session.apply({"edge": given})
        assert str(ours.value) == str(theirs.value)


def test_bad_rows_are_handled_as_in_a_session(running: Running, tmp_path: Path) -> None:
    db = running.connect()
    (tmp_path / "edge.csv").write_text("4,5\nx,6\n")
    (tmp_path / "more.diff").write_text('+edge(6, 7)\n+edge("y", 7)\n')
    with pytest.raises(ElastalogError, match="E0502"):
        db.apply({"edge": [(4, 5), ("x", 6)]})
    with pytest.warns(UserWarning, match="1 bad row of `edge` skipped"):
        changes = db.apply({"edge": tmp_path / "edge.csv"}, bad_rows="skip")
    assert list(changes["edge"].inserted) == [(4, 5)]
    assert [(one.relation, one.loaded, one.bad) for one in changes.reports] == [("edge", 1, 1)]
    kept = elastalog.BadRows("quarantine", folder=tmp_path / "bad")
    update = db.update(bad_rows=kept)
    update.insert("edge", [(5, 6), ("x", 6)])
    update.read(tmp_path / "more.diff")
    with pytest.warns(UserWarning, match="2 bad rows of `edge` set aside"):
        update.commit()
    assert sorted(update.changes["edge"].inserted) == [(5, 6), (6, 7)]
    assert len((tmp_path / "bad" / "edge.bad.jsonl").read_text().splitlines()) == 2
    with pytest.raises(ElastalogError, match="E0513"):
        db.apply({"edge": [("x", 6)]}, bad_rows=elastalog.BadRows("skip", most=0))
    with pytest.raises(ElastalogError, match="`skip`"):
        db.apply({"edge": []}, bad_rows="skp")  # type: ignore[arg-type]


def test_a_client_that_is_left_open_warns_of_nothing(running: Running) -> None:
    def use() -> None:
        db = running.connect()
        assert len(db["edge"]) == 3
        thread = threading.Thread(target=lambda: db.epoch)
        thread.start()
        thread.join()

    gc.collect()  # what tests before this one left
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        use()
        gc.collect()
    assert [str(one.message) for one in found] == []


@pytest.mark.parametrize(("name", "told"), table(__file__, "what only sessions have is told"))
def test_what_only_sessions_have_is_told(running: Running, name: str, told: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(running.connect(), name)
    assert told in str(raised.value)


def test_everything_that_a_session_has_is_there_or_told() -> None:
    public = {name for name in vars(elastalog.Session) if not name.startswith("_")}
    assert {name for name in public if not hasattr(elastalog.Client, name)} == ONLY_OF_SESSIONS.keys()


def test_an_update_with_a_key_is_done_once(running: Running) -> None:
    db = running.connect()
    first, again = (db.apply({"edge": [(4, 5)]}, batch="1") for _ in range(2))
    assert (first.impact, first.is_repeated, again.impact, again.is_repeated) == (5, False, 0, True)
    with pytest.raises(ElastalogError, match="E0932"):
        db.apply({"edge": [(5, 6)]}, batch="1")
    assert db.epoch == 2


def test_a_key_stands_for_one_update_after_a_restart_too(start: Callable[..., Running], tmp_path: Path) -> None:
    kept = tmp_path / "kept.store"
    first = start()
    db = first.connect()
    new = ".decl weight(of: number, is: float)"
    assert db.apply({"edge": [(4, 5), (5, 6)]}, batch="1").impact == 11
    with db.update(batch="2") as update:  # facts are read as their relation says, which is not there yet
        update.add_rules(new)
        update.insert("weight", [(1, 2)])
    first.service.close()
    db = start(session=elastalog.open(store=kept)).connect()
    assert db.apply({"edge": [(5, 6), (4, 5)]}, batch="1").impact == 0
    with db.update(batch="2") as update:
        update.add_rules(new)
        update.insert("weight", [(1, 2)])
    assert update.changes.impact == 0
    with pytest.raises(ElastalogError, match="E0932"):
        db.apply({"edge": [(4, 5)]}, batch="1")
    with pytest.raises(ElastalogError, match="E0932"), db.update(batch="2") as update:
        update.remove_rules(1)
    assert db.apply({"edge": [(7, 8)]}, batch="1", source="another").impact == 2  # every source has keys of its own


def test_a_key_whose_update_was_refused_can_be_used_again(running: Running) -> None:
    db = running.connect()
    with pytest.raises(ElastalogError, match="E0502"):
        db.apply({"edge": [(4, "five")]}, batch="1")
    assert db.apply({"edge": [(4, 5)]}, batch="1").impact == 5


def test_proofs_and_absences_are_those_of_the_session(running: Running) -> None:
    db = running.connect()
    proof = db.explain("path(1, 4)")
    assert str(proof) == str(running.session.explain("path(1, 4)"))
    assert [fact.values for fact in proof.explicit_facts] == [(1, 2), (2, 3), (3, 4)]
    step = db.explain(("path", (1, 4)), 1)
    assert not step.is_complete
    assert str(step.expand((1,))) == str(proof)
    assert str(db.why_not("path(4, 1)")) == str(running.session.why_not("path(4, 1)"))
    deep = db.why_not("path(4, 1)", depth=4)
    assert str(deep) == str(running.session.why_not("path(4, 1)", depth=4))
    assert str(deep).count("path(") > str(db.why_not("path(4, 1)")).count("path(")
    assert len(db.derivations("path(1, 4)")) == 1
    assert sorted(fact.values for fact in db.uses("edge(3, 4)")) == [(3, 4)]
    assert len(list(db.uses("edge(3, 4)", all=True))) == 3


def test_what_broke_it_is_found_and_undone(running: Running) -> None:
    db = running.connect()
    db.apply({"edge": [(4, 1), (8, 9)]})
    unwanted = ["path(1, 1)"]
    assert [str(one) for one in db.localise(unwanted).elements] == ["+edge(4, 1)"]
    assert db.blame("path(1, 1)").epoch == 2
    assert str(db.blame("path(1, 1)")) == "path(1, 1) appeared in epoch 2, because of\n  +edge(4, 1)"
    assert "has held since epoch 1" in str(db.blame("path(1, 2)"))
    suggestion = db.suggest(unwanted)
    assert [str(one) for one in suggestion.elements] == ["+edge(4, 1)"]
    assert suggestion.minimum
    assert ("path", (1, 1)) not in [("path", row) for row in suggestion.apply()["path"].inserted]
    assert db.log()[-1].source == "repair"
    assert (1, 1) not in db["path"]
    with pytest.raises(ElastalogError, match="E0938"):
        suggestion.apply()


def test_rules_change_and_go_back(running: Running) -> None:
    db = running.connect()
    text = db.program.tree.source.text
    rule = "path(x, z) :- edge(x, y), path(y, z)."
    assert len(db.change_rules(removed=rule)["path"].deleted) == 3
    assert len(db["path"]) == 3
    assert len(db.upgrade(text, preview=True)["path"].inserted) == 3
    db.upgrade(text)
    assert sorted(db["path"]) == PATHS


def test_earlier_epochs_are_read_by_number_and_by_time(running: Running) -> None:
    db = running.connect()
    before = datetime.now(UTC)
    db.apply(deleted={"edge": [(1, 2)]})
    assert len(db["path"]) == 3
    for moment in (1, before):
        past = db.at(moment)
        assert past.epoch == 1
        assert sorted(past["path"]) == PATHS
        assert past.explain("path(1, 4)").height == 3
        assert len(past.query("path(1, X)")) == 3
        with pytest.raises(ElastalogError, match="E0814"):
            past.apply({"edge": [(1, 2)]})
    assert len(db.changes_since(1)["path"].deleted) == 3
    with pytest.raises(ElastalogError, match="E0813"):
        db.at(9)


def test_a_client_of_an_earlier_epoch_knows_nothing_of_later_ones(running: Running) -> None:
    db = running.connect()
    for rows in ([(4, 5)], [(5, 6)], [(6, 7)]):
        db.apply({"edge": rows})
    db.apply({}, {"edge": [(4, 5)]})
    earlier = db.at(3)
    assert [entry.epoch for entry in earlier.log()] == [1, 2, 3]
    assert [entry.epoch for entry in earlier.log(2)] == [2, 3]
    assert [entry.epoch for entry in db.log(2)] == [4, 5]
    assert earlier.log(0) == db.log(0) == ()
    assert [turn.entry.epoch for turn in db.history("edge(4, 5)")] == [2, 5]
    assert [turn.entry.epoch for turn in earlier.history("edge(4, 5)")] == [2]
    with pytest.raises(ElastalogError, match=r"E0814.*an earlier epoch does not change"):
        earlier.listen()


def test_a_listener_hears_every_epoch_once(running: Running) -> None:
    db = running.connect()
    db.apply({"edge": [(10, 11)]})
    heard: list[elastalog.client.client.Event] = []
    listening = threading.Thread(target=lambda: heard.extend(islice(db.listen(1), 3)))
    listening.start()
    db.apply({"edge": [(11, 12)]})
    db.apply(deleted={"edge": [(10, 11)]})
    listening.join(20)
    assert [(event.since, event.epoch) for event in heard] == [(1, 2), (2, 3), (3, 4)]
    assert sorted(heard[1].changes["path"].inserted) == [(10, 12), (11, 12)]


def test_records_and_branches_come_and_go(start) -> None:
    program = """
    .type Tree = Leaf { x: number } | Node { l: Tree, r: Tree }
    .type List = [head: number, tail: List]
    .decl kept, copy(t: Tree, l: List, f: float)
    copy(t, l, f) :- kept(t, l, f).
    """
    db = start(program, None).connect()
    tree = Branch("Node", Branch("Leaf", 1), Branch("Leaf", 2))
    rows = [(tree, (1, (2, None)), 0.5), (Branch("Leaf", 3), None, float("inf"))]
    assert db.apply({"kept": rows})["copy"].inserted.sort("f").head() == rows
    assert sorted(db["copy"], key=lambda row: row[2]) == rows
    proof = db.explain(("copy", rows[0]))
    assert proof.children[0].fact.relation == "kept"


def test_a_relation_without_columns(start) -> None:
    db = start(".decl yes()\n.decl on()\n.input on\nyes() :- on().", {"on": []}).connect()
    assert list(db.apply({"on": [()]})["yes"].inserted) == [()]
    assert list(db["yes"]) == [()]


def test_errors_carry_the_diagnostics(running: Running) -> None:
    db = running.connect()
    with refused("E0110"):
        db.query("path(1, X")
    with pytest.raises(KeyError):
        db["paths"]
    with pytest.raises(ElastalogError, match="E0701"):
        db.explain("path(4, 1)")
    with refused("E0924"):
        running.connect(READ_TOKEN).apply({"edge": [(4, 5)]})


def test_nobody_at_the_address_is_said() -> None:
    with pytest.raises(ElastalogError, match="E0933"):
        elastalog.connect("http://127.0.0.1:9")
    with pytest.raises(ElastalogError, match="E0933"):
        elastalog.connect("ftp://somewhere")


VALUES = """
.type Pair = [x: number, y: float]
.type Tree = Leaf {} | Node {v: float}
.decl made, kept(p: Pair, t: Tree, f: float, u: unsigned, s: symbol)
kept(p, t, f, u, s) :- made(p, t, f, u, s).
"""
NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    "row",
    [
        ((1, NAN), Branch("Leaf"), NAN, 2**64 - 1, "nan"),
        (None, Branch("Node", -INFINITE), 1.5, 0, ""),
        ((2, -INFINITE), Branch("Node", NAN), INFINITE, 7, '"x\n'),
        ((3, 1e16), Branch("Node", 1e16), 1e16, 7, "whole"),
    ],
    ids=str,
)
def test_values_that_json_has_not_are_as_in_a_session(start: Callable[..., Running], row: tuple[Any, ...]) -> None:
    running = start(VALUES, None)
    db, session = running.connect(), running.session
    assert str(list(db.apply({"made": [row]})["kept"].inserted)) == str([row])
    assert row in db["kept"]
    assert (*row[:-1], "other") not in db["kept"]
    assert str(db.explain(("kept", row))) == str(session.explain(("kept", row)))
    assert list(map(str, db.uses(("made", row)))) == list(map(str, session.uses(("made", row))))
    assert list(db.query("made(?p, ?t, ?f, ?u, S)", **dict(zip("ptfu", row, strict=False)))) == [(row[-1],)]


def test_what_can_be_no_fact_is_not_in_a_relation(running: Running) -> None:
    path = running.connect()["path"]
    assert [fact in path for fact in ((1, 2), (np.int64(1), 2), (1, "x"), (1, 2.0))] == [True, True, False, False]
    for db in (path, running.session["path"]):
        for fact in ((1,), [1, 2], 1):
            with pytest.warns(UserWarning, match="E0607.*its facts are tuples of 2 values"):
                assert fact not in db


def test_parameters_may_be_of_numpy(running: Running) -> None:
    db = running.connect()
    assert sorted(db.query("path(?a, X)", a=np.int64(2))) == [(3,), (4,)]
    found = db.why_not("path(4, 1)", bindings={"y": np.int64(2)})
    assert str(found) == str(db.why_not("path(4, 1)", bindings={"y": 2}))


def test_an_update_may_declare_the_relation_that_its_facts_are_of(running: Running) -> None:
    db = running.connect()
    added = ".decl far(x: number)\n.decl near(x: number)\nnear(x) :- far(x)."
    assert sorted(db.preview({"far": [(7,)]}, added=added)["near"].inserted) == [(7,)]
    with db.update() as update:
        update.add_rules(added)
        update.insert("far", [(7,), (8,)])
        with pytest.raises(ElastalogError, match="E0606"):
            update.insert("fra", [(7,)])
    assert sorted(update.changes["near"].inserted) == [(7,), (8,)]


def test_a_suggestion_says_whether_it_is_about_facts(running: Running) -> None:
    asked = {"unwanted": ["path(1, 4)"], "over": "facts"}
    suggestion = running.connect().suggest(**asked)
    assert str(suggestion) == str(running.session.suggest(**asked))


@pytest.mark.parametrize(
    "given",
    [
        {"missing": ["path(1, 9)"], "candidates": ["edge(4, 9)", "edge(7, 8)"]},
        {"missing": "path(1, 9)", "candidates": {"edge": [(7, 8), (4, 9)]}},
        {"missing": ("path", (1, 9)), "candidates": [("edge", (3, 9)), "edge(4, 9)"],
         "rejected": [("+", elastalog.Fact("edge", (3, 9)))]},
        {"unwanted": ["path(1, 4)"], "weights": {("edge", (1, 2)): 3, "-edge(2, 3)": 2}, "over": "facts"},
    ],
)  # fmt: skip
def test_a_repair_takes_what_a_session_takes(running: Running, given: Any) -> None:
    ours, theirs = (db.suggest(**given) for db in (running.connect(), running.session))
    assert list(map(str, ours.elements)) == list(map(str, theirs.elements))
    assert len(ours.elements) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"missing": ["path(1, 9)"], "candidates": ["edge(7, 8)"]}, "E0712"),
        ({"missing": ["path(1, 9)"], "candidates": []}, "E0712"),
        ({"missing": ["path(1, 9)"], "candidates": 5}, "E0617"),
        ({"missing": 5}, "E0617"),
        ({"unwanted": [5]}, "E0617"),
        ({"missing": ["path(1, 9)"], "rejected": 5}, "E0617"),
        ({"missing": ["path(1, 9)"], "weights": ["edge(1, 2)"]}, "E0617"),
    ],
)
def test_a_repair_refuses_what_a_session_refuses(running: Running, given: Any, code: str) -> None:
    for db in (running.connect(), running.session):
        with refused(code):
            db.suggest(**given)


@pytest.mark.parametrize(
    "slip",
    [
        lambda db: db.apply({}, [("edge", (1, 2))]),
        lambda db: db.query(5),
        lambda db: db.query("path(?a, X)", a=b"x"),
        lambda db: elastalog.connect(None),
        lambda db: pickle.dumps(db),
        lambda db: pickle.dumps(db["path"]),
    ],
)
def test_slips(running: Running, slip: Callable[[elastalog.Client], object]) -> None:
    with pytest.raises(TypeError, match="E0617"):
        slip(running.connect())


def test_a_relation_looks_as_in_a_session(running: Running) -> None:
    db = running.connect()
    assert repr(db["path"]) == repr(running.session["path"])
    assert db["path"].sort("to", "from", descending=True).head(2) == [(3, 4), (2, 4)]
    assert sorted(db["path"].filter(lambda x, y: y == 3)) == [(1, 3), (2, 3)]
    assert db["path"].to_arrow(types={"to": "int16"}).schema.field("to").type == pa.int16()


def test_explicit_facts_are_told_apart(start: Callable[..., Running]) -> None:
    running = start(facts={**FACTS, "path": [(7, 8), (1, 2)]})
    db = running.connect()
    assert sorted(db.explicit("path")) == [(1, 2), (7, 8)]
    db.apply(deleted={"path": [(1, 2)]})  # which still holds
    assert sorted(db.explicit("path")) == sorted(running.session.explicit("path")) == [(7, 8)]
    assert sorted(db.at(1).explicit("path")) == [(1, 2), (7, 8)]


def test_a_difference_has_what_that_of_a_session_has(running: Running) -> None:
    db = running.connect()
    db.apply({"edge": [(1, 3)], "label": [(2, "two")]}, {"label": [(1, "one")]})
    db.change_rules(".decl near(x: number)\nnear(x) :- edge(1, x).", removed=3)
    for first, last in ((1, 3), (3, 1), (2, 3)):
        there, here = db.diff(first, last), running.session.diff(first, last)
        assert repr(there) == repr(here)
        assert there.added_declarations == here.added_declarations
        for name in here:
            assert sorted(there[name].inserted) == sorted(here[name].inserted)
            assert sorted(there[name].deleted) == sorted(here[name].deleted)
            assert there[name].moved.to_pylist() == here[name].moved.to_pylist()
    assert repr(db.diff(2)) == repr(running.session.diff(2)) == repr(there) != repr(db.diff(1))
    moved = [{"from": 1, "to": 3, "@was": 2, "@level": 1}, {"from": 1, "to": 4, "@was": 3, "@level": 2}]
    assert db.diff(1, 2)["path"].moved.to_pylist() == moved
    with pytest.raises(ElastalogError, match="E0606"):
        there["pth"]
    with pytest.raises(ElastalogError, match=r"E0813.*there is no epoch 9: the store keeps epochs 1 to 3"):
        db.diff(1, 9)


def test_forecasts_are_those_of_the_session(running: Running) -> None:
    db = running.connect()
    update = {"inserted": {"edge": [(4, 5)]}, "added": "named(t) :- label(_, t)."}
    assert db.forecast(**update) == running.session.forecast(**update) != ()


def test_files_and_previews_as_a_session_takes_them(running: Running, tmp_path: Path) -> None:
    db = running.connect()
    diff = tmp_path / "monday.diff"
    diff.write_text(
        '+edge(4, 5)\n-label(1, "one")\n+rule: .decl last(x: number)\n+rule: last(x) :- edge(_, x), !edge(x, _).\n'
    )
    changes = db.apply(str(diff), {"edge": [(1, 2)]}, source="file", batch=1)
    assert list(changes["last"].inserted) == [(5,)]
    diff.write_text("+edge(7, 8)\n")
    assert db.apply(diff, source="file", batch=2).impact == 3
    assert db.apply(diff, source="file", batch=2).impact == 0
    assert running.session.explicit("edge").sort().head() == [(2, 3), (3, 4), (4, 5), (7, 8)]
    with pytest.raises(ElastalogError, match="E0515"):
        db.apply("tuesday.diff")
    assert list(db.change_rules("last(x) :- label(x, _).", preview=True)) == []
    assert list(db.change_rules("last(x) :- edge(x, 3).", preview=True)["last"].inserted) == [(2,)]
    program = tmp_path / "new.dl"
    program.write_text(
        ".decl edge(from: number, to: number)\n.input edge\n.decl loop(x: number)\nloop(x) :- edge(x, x).\n"
    )
    told = [db.upgrade(given, preview=True) for given in (program, str(program), program.read_text())]
    assert len({repr(one) for one in [*told, running.session.upgrade(program, preview=True)]}) == 1
    db.upgrade(program)
    assert "loop" in db
    assert db.epoch == 4


def test_answers_warn_as_those_of_a_session(running: Running) -> None:
    db = running.connect()
    with pytest.warns(UserWarning, match="E0618.*`one` is a variable here"):
        db.query("label(1, one)")
    with pytest.warns(UserWarning, match="E0618.*`one` is a variable here"):
        db.why_not("label(7, one)")
    with refused("E0608", match="`one` is a variable here, which any value fits"):
        db.suggest(["label(1, one)"], over="facts")


@pytest.mark.parametrize("end", ["/", "/api/v1", "/api/v1/"])
def test_an_address_may_be_that_of_the_calls(running: Running, end: str) -> None:
    with elastalog.connect(running.url + end, token=READ_TOKEN) as db:
        assert (db.url, db.epoch) == (running.url, 1)


def test_tls_where_there_is_none_is_said(running: Running) -> None:
    with pytest.raises(ElastalogError, match=r"E0933.*without TLS.*begins with `http://`"):
        elastalog.connect(running.url.replace("http:", "https:"))


def test_the_calls_that_a_session_has(running: Running) -> None:
    """What is shared is tried against a service, too: prepared queries, the history of a fact, an earlier name."""
    db = running.connect()
    reach = db.prepare("path(?a, X)")
    assert set(reach(a=1)) == set(running.session.query("path(1, X)"))
    db.apply({"edge": [(4, 9)]}, source="crawler", batch=7)
    assert db.apply({"edge": [(4, 9)]}, source="crawler", batch=7).impact == 0
    turns = [(turn.epoch, turn.what, turn.was) for turn in running.session.history("path(1, 9)")]
    assert [(turn.epoch, turn.what, turn.was) for turn in db.history("path(1, 9)")] == turns
    with pytest.warns(DeprecationWarning, match="`key=…` is now `batch=…`"):
        db.apply({"edge": [(9, 10)]}, key="2")
    with pytest.warns(DeprecationWarning, match="`explain_absence` is now `why_not`"):
        assert str(db.explain_absence("path(9, 1)")) == str(running.session.why_not("path(9, 1)"))
    assert not hasattr(db, "twin")


def test_a_wrong_token_is_said_to_be_wrong(running: Running) -> None:
    for token, told in (
        ("wrong", "does not know this token"),
        ("", "does not know this token"),
        (None, "needs a token"),
    ):
        with pytest.raises(ElastalogError) as error:
            elastalog.connect(running.url, token)
        (found,) = error.value.diagnostics
        assert (found.code, told in found.message) == ("E0923", True)
        assert "connect(url, token=…)" in (found.help or "")


def test_an_address_may_have_the_token(running: Running, tmp_path: Path) -> None:
    """As the workbench prints it; and files of changes are previewed, too."""
    db = elastalog.connect(f"{running.url}/?token={TOKEN}")
    (tmp_path / "u.diff").write_text("+edge(8, 9).\n")
    assert set(db.preview(tmp_path / "u.diff")["edge"].inserted) == {(8, 9)}
    with pytest.raises(ElastalogError, match="E0923"):
        elastalog.connect(f"{running.url}/?token=other")
