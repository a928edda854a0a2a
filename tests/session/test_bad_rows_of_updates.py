"""Bad rows of updates are handled by policy, as those of the first facts are: given in Python, in diff files, and on
the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.diagnostic import LimitReached
from tests.closures import REACH as PROGRAM
from tests.commands import run
from tests.refusals import refused

DIFF = '+edge(2, 3).\n+edge("x", 3).\n-edge(1).\n+edgy(1, 2).\nhello\n-edge(1, 2).\n'


def quarantined(folder: Path, relation: str = "edge") -> list[tuple[str, int, str]]:
    lines = (folder / f"{relation}.bad.jsonl").read_text().splitlines()
    return [(Path(one["file"]).name, one["line"], one["code"]) for one in map(json.loads, lines)]


def test_bad_rows_fail_unless_said_otherwise() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        with refused("E0502"):
            db.apply({"edge": [(3, 4), (5, "x")]})
        assert (db.epoch, list(db["edge"])) == (1, [(1, 2)])
        assert db.apply({"edge": [(3, 4)]}).reports == ()


def test_the_policy_of_the_session_holds_for_updates() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows="skip") as db:
        changes = db.apply({"edge": [(2, 3), (5, "x")]}, {"edge": [(None, 2), (1, 2)]})
        assert sorted(db["edge"]) == [(2, 3)]
        (report,) = changes.reports
        assert (report.relation, report.loaded, report.bad) == ("edge", 2, 2)
        assert sorted(row.fault.code for row in report.first_bad) == ["E0502", "E0504"]
        with pytest.raises(ElastalogError):
            db.apply({"edge": [(5, "x")]}, bad_rows="fail")


def test_a_call_may_have_its_own_policy() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        with db.update(bad_rows="skip") as update:
            update.insert("edge", pa.table({"from": [2, 3], "to": [3, None]}))
        assert sorted(db["edge"]) == [(1, 2), (2, 3)]
        assert [report.bad for report in update.reports] == [1]
        asyncio.run(asyncio.to_thread(db.apply, {"edge": [(9, 9), ()]}, bad_rows="skip"))
        assert (9, 9) in db["edge"]
        with refused("E0612"):
            db.apply({"edge": []}, bad_rows="drop")


def test_the_bound_holds_for_all_of_an_update_and_nothing_happens_beyond_it() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows=elastalog.BadRows("skip", most=2)) as db:
        update = db.update()
        update.insert("edge", [(2, 3), (2, "x"), (2, "y")])
        with pytest.raises(LimitReached) as error:
            update.insert("edge", [(2, "z")])
        assert [diagnostic.code for diagnostic in error.value.diagnostics[:2]] == ["E0513", "E0502"]
        assert db.epoch == 1


def test_bad_rows_of_all_updates_are_set_aside_and_those_of_dropped_ones_are_not(tmp_path: Path) -> None:
    with elastalog.open(
        PROGRAM, {"edge": [(1, 2)]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path / "bad")
    ) as db:
        db.preview({"edge": [(0, "no")]})
        update = db.update()
        update.insert("edge", [(0, "never")])
        del update
        assert not (tmp_path / "bad").exists()
        for number in range(2):
            for _ in range(2):  # the second time the batch is known, and nothing is done
                db.apply({"edge": [(number, 7), (number, "x")]}, source="s", batch=number)
        db.apply({"edge": [(8, 9)]})  # all good: what is in quarantine stays
    assert quarantined(tmp_path / "bad") == [("<edge>", 2, "E0502"), ("<edge>", 2, "E0502")]


def test_bad_lines_of_a_diff_file_are_located_and_set_aside(tmp_path: Path) -> None:
    (tmp_path / "monday.diff").write_text(DIFF)
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path)) as db:
        changes = db.apply(tmp_path / "monday.diff")
        assert sorted(db["edge"]) == [(2, 3)]
    assert {report.relation: report.bad for report in changes.reports} == {"edge": 2, "diff": 2}
    assert quarantined(tmp_path) == [("monday.diff", 2, "E0502"), ("monday.diff", 3, "E0501")]
    assert quarantined(tmp_path, "diff") == [("monday.diff", 4, "E0521"), ("monday.diff", 5, "E0520")]


def test_wrong_rules_are_errors_under_every_policy(tmp_path: Path) -> None:
    (tmp_path / "monday.diff").write_text("+rule: path(x, y) :- edgy(x, y).\n")
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows="skip") as db, pytest.raises(ElastalogError):
        db.apply(tmp_path / "monday.diff")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_bad_rows_of_a_table_of_changes_are_located(tmp_path: Path, kind: str) -> None:
    ops, sources, targets = ["+", "*", "+", "-", "?"], [2, 3, 4, 1, 6], [3, 4, None, 2, 7]
    if kind == "csv":
        rows = "".join(f"{o},{s},{t or ''}\n" for o, s, t in zip(ops, sources, targets, strict=True))
        (tmp_path / "edge.csv").write_text(f"op,from,to\n{rows}")
    else:
        pq.write_table(pa.table({"op": ops, "from": sources, "to": targets}), tmp_path / "edge.parquet")
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}, bad_rows="skip") as db:
        (report,) = db.apply(tmp_path / f"edge.{kind}").reports
        assert sorted(db["edge"]) == [(2, 3)]
    first = 2 if kind == "csv" else 1
    assert [(row.line - first, row.fault.code) for row in report.first_bad] == [
        (1, "E0522"),
        (2, "E0502" if kind == "csv" else "E0504"),
        (4, "E0522"),
    ]


def test_apply_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "monday.diff").write_text(DIFF)
    store = tmp_path / "store"
    assert run("init", store, tmp_path / "reach.dl", "-F", tmp_path).exit_code == 0
    assert run("apply", store, tmp_path / "monday.diff").exit_code == 1
    done = run("apply", store, tmp_path / "monday.diff", "--bad-rows", "quarantine", "--quarantine", tmp_path / "bad")
    assert done.exit_code == 0, done.output
    assert "2 bad rows of `edge` set aside" in done.stderr
    assert "monday.diff:2" in done.stderr
    assert quarantined(tmp_path / "bad") == [("monday.diff", 2, "E0502"), ("monday.diff", 3, "E0501")]
    assert run("apply", store, "-", "--bad-rows", "skip", "--max-bad-rows", "0", text="+edge(1).\n").exit_code == 3
    assert run("apply", store, "-", "--bad-rows", "skip", text="+edge(1).\n+edge(7, 8).\n").exit_code == 0
    assert run("query", store, "edge(X, Y)").stdout.splitlines() == ["2\t3", "7\t8"]


def test_a_stream_of_updates_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates" / "1.diff").write_text(DIFF)
    words = ["stream", tmp_path / "reach.dl", "-F", tmp_path, "--updates", tmp_path / "updates", "--show-changes"]
    assert run(*words).exit_code == 1
    done = run(*words, "--bad-rows", "skip")
    assert done.exit_code == 0, done.output
    assert "2 bad rows of `edge` skipped" in done.stderr
    assert "+edge(2, 3)." in done.stdout


def test_values_given_in_another_type_are_counted(tmp_path: Path) -> None:
    table = pa.table({"from": [1.0, 2.0], "to": pa.array([True, None])})
    with elastalog.open(PROGRAM, {"edge": pa.table({"from": [1.0], "to": [True]})}) as db:
        assert list(db["edge"]) == [(1, 1)]
        assert [(report.loaded, report.converted) for report in db.reports] == [(1, 2)]
        assert db.apply({"edge": table}, bad_rows="skip").reports[0].converted == 3
    with elastalog.open(PROGRAM, {"edge": pa.table({"from": [1], "to": [2]})}) as db:
        assert [report.converted for report in db.reports] == [0]
    (tmp_path / "reach.dl").write_text(PROGRAM)
    pq.write_table(table.slice(0, 1), tmp_path / "edge.parquet")
    words = ["run", tmp_path / "reach.dl", "-F", tmp_path, "-D", tmp_path / "out"]
    assert "E0525" not in run(*words).stderr
    told = run("-v", *words).stderr
    assert "note[E0525]: 2 values were given for `edge` in another type than the declared one" in told


# --- `bad_rows=` holds for rows given in Python as it does for files --------------------------------------------------


PROGRAM_GIVEN = ".decl edge(from: number, to: number)\n.input edge\n"
ROWS = {
    "tuples": [(1, 2), (3, "x"), (4,), "no", (5, 6), (7, None)],
    "dicts": [
        {"to": 2, "from": 1},
        {"to": "x", "from": 3},
        {"to": 4},
        "no",
        {"FROM": 5, "to": 6},
        {"from": 7, "to": None},
    ],
    "mixed pandas": pd.DataFrame({"to": [2, "x", None, 2.5, 6, "y"], "from": [1, 3, 4, 4, 5, 7]}, dtype=object),
    "objects": np.array([(1, 2), (3, "x"), (4, None), (4, "n"), (5, 6), (7, None)], dtype=object),
}
NUMBERS = [2, 3, 4, 6]


@pytest.mark.parametrize("kind", ROWS)
def test_bad_rows_are_skipped_and_reported_by_their_number(kind: str) -> None:
    with elastalog.open(PROGRAM_GIVEN, {"edge": ROWS[kind]}, bad_rows="skip") as db:
        assert sorted(db["edge"]) == [(1, 2), (5, 6)]
        (report,) = db.reports
        assert (report.relation, report.loaded, report.bad) == ("edge", 2, 4)
        assert [row.line for row in report.first_bad] == NUMBERS
        assert report.first_bad[0].location == "<edge>:2"


def test_bad_rows_of_a_table_are_skipped() -> None:
    table = pa.table({"from": pa.array([1, 2, 2**63], pa.uint64()), "to": pa.array([1, None, 3])})
    with elastalog.open(PROGRAM_GIVEN, {"edge": table}, bad_rows="skip") as db:
        assert list(db["edge"]) == [(1, 1)]
        assert [row.fault.code for row in db.reports[0].first_bad] == ["E0504", "E0503"]


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    with elastalog.open(
        PROGRAM_GIVEN, {"edge": ROWS["tuples"]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path)
    ) as db:
        assert len(db["edge"]) == 2
    lines = [json.loads(line) for line in (tmp_path / "edge.bad.jsonl").read_text().splitlines()]
    assert [(line["file"], line["line"]) for line in lines] == [("<edge>", number) for number in NUMBERS]
    assert lines[0]["text"] == "(3, 'x')"


def test_too_many_bad_rows_are_an_error() -> None:
    with pytest.raises(LimitReached) as error:
        elastalog.open(PROGRAM_GIVEN, {"edge": ROWS["tuples"]}, bad_rows=elastalog.BadRows("skip", most=3))
    assert error.value.diagnostics[0].code == "E0513"


def test_what_is_no_table_at_all_is_an_error_under_every_policy() -> None:
    for rows, code in ((5, "E0502"), ("edge", "E0515"), (pa.table({"from": ["a"], "to": ["b"]}), "E0502")):
        with refused(code):
            elastalog.open(PROGRAM_GIVEN, {"edge": rows}, bad_rows="skip")


def test_rows_may_name_their_values() -> None:
    with elastalog.open(PROGRAM_GIVEN, {"edge": [{"to": 2, "From": 1}]}) as db:
        assert list(db["edge"]) == [(1, 2)]
        with pytest.raises(ElastalogError) as error:
            db.apply({"edge": [{"to": 2, "src": 1}]})
    assert error.value.diagnostics[0].message == "row 1 given for `edge`: the row has no value for `from`"
    assert error.value.diagnostics[0].help == "name the values as they are declared: `from`, `to`"


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_a_missing_value_of_a_polars_frame_is_handled_by_policy(policy: str, tmp_path: Path) -> None:
    """Its texts are views, which Arrow does not filter."""
    bad_rows = elastalog.BadRows(policy, folder=tmp_path)
    program = ".decl derived(target: symbol, source: symbol)\n.decl size(of: symbol, n: number)"
    frames = {
        "derived": pl.DataFrame({"source": ["a", None], "target": ["b", "c"]}),
        "size": pl.DataFrame({"of": ["a", "b"], "n": [None, 3]}),
    }
    with elastalog.open(program, frames, bad_rows=bad_rows) as db:
        assert set(db["derived"]) == {("b", "a")}
        assert set(db["size"]) == {("b", 3)}
        db.apply({"derived": pl.DataFrame({"source": ["x", None], "target": ["y", "z"]})})
        assert set(db["derived"]) == {("b", "a"), ("y", "x")}
