"""`bad_rows=` holds for rows given in Python as it does for files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.diagnostics.diagnostic import LimitReached

PROGRAM = ".decl edge(from: number, to: number)\n.input edge\n"
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
    with elastalog.open(PROGRAM, {"edge": ROWS[kind]}, bad_rows="skip") as db:
        assert sorted(db["edge"]) == [(1, 2), (5, 6)]
        (report,) = db.reports
        assert (report.relation, report.loaded, report.bad) == ("edge", 2, 4)
        assert [row.line for row in report.first_bad] == NUMBERS
        assert report.first_bad[0].location == "<edge>:2"


def test_bad_rows_of_a_table_are_skipped() -> None:
    table = pa.table({"from": pa.array([1, 2, 2**63], pa.uint64()), "to": pa.array([1, None, 3])})
    with elastalog.open(PROGRAM, {"edge": table}, bad_rows="skip") as db:
        assert list(db["edge"]) == [(1, 1)]
        assert [row.fault.code for row in db.reports[0].first_bad] == ["E0504", "E0503"]


def test_bad_rows_are_set_aside(tmp_path: Path) -> None:
    with elastalog.open(
        PROGRAM, {"edge": ROWS["tuples"]}, bad_rows=elastalog.BadRows("quarantine", folder=tmp_path)
    ) as db:
        assert len(db["edge"]) == 2
    lines = [json.loads(line) for line in (tmp_path / "edge.bad.jsonl").read_text().splitlines()]
    assert [(line["file"], line["line"]) for line in lines] == [("<edge>", number) for number in NUMBERS]
    assert lines[0]["text"] == "(3, 'x')"


def test_too_many_bad_rows_are_an_error() -> None:
    with pytest.raises(LimitReached) as error:
        elastalog.open(PROGRAM, {"edge": ROWS["tuples"]}, bad_rows=elastalog.BadRows("skip", most=3))
    assert error.value.diagnostics[0].code == "E0513"


def test_what_is_no_table_at_all_is_an_error_under_every_policy() -> None:
    for rows in (5, "edge", pa.table({"from": ["a"], "to": ["b"]})):
        with pytest.raises(ElastalogError) as error:
            elastalog.open(PROGRAM, {"edge": rows}, bad_rows="skip")
        assert error.value.diagnostics[0].code == "E0502"


def test_rows_may_name_their_values() -> None:
    with elastalog.open(PROGRAM, {"edge": [{"to": 2, "From": 1}]}) as db:
        assert list(db["edge"]) == [(1, 2)]
        with pytest.raises(ElastalogError) as error:
            db.apply({"edge": [{"to": 2, "src": 1}]})
    assert error.value.diagnostics[0].message == "row 1 given for `edge`: no attribute `from`"
    assert error.value.diagnostics[0].help == "name the values as they are declared: `from`, `to`"
