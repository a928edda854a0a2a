"""Columns of real tables: taken where they say the same in the declared type."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import elastalog
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.fact import Fact
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from tests.commands import run
from tests.refusals import refused

HALVES = pa.array([np.float16(1), np.float16(-2)])


def values(base: Base, array: object) -> list[object]:
    schema, dictionary = Schema("r", (Column("x", base),)), Dictionary()
    words = to_words(schema, pa.table({"x": array}), dictionary)
    return [dictionary.decode_value(base, int(word)) for word in words[:, 0]]


@pytest.mark.parametrize(
    ("base", "array", "expected"),
    [
        (Base.NUMBER, pa.array([1.0, -2.0]), [1, -2]),
        (Base.NUMBER, pa.array([True, False]), [1, 0]),
        (Base.NUMBER, pa.array([Decimal("12.00")]), [12]),
        (Base.UNSIGNED, pa.array([Decimal(2**64 - 1)]), [2**64 - 1]),
        (Base.FLOAT, pa.array([Decimal("1.25")]), [1.25]),
        (Base.SYMBOL, pa.array([date(2026, 11, 15)]), ["2026-11-15"]),
        (Base.SYMBOL, pa.array([datetime(2026, 11, 15, 9, 30)], pa.timestamp("s")), ["2026-11-15T09:30:00"]),
        (
            Base.SYMBOL,
            pa.array([datetime(2026, 11, 15, 9, tzinfo=UTC)], pa.timestamp("s", "UTC")),
            ["2026-11-15T09:00:00Z"],
        ),
        (Base.SYMBOL, pa.array([0], pa.timestamp("s", "Nowhere/Known")), ["1970-01-01T00:00:00Z"]),
        (Base.SYMBOL, pa.array([Decimal("1.50")]), ["1.50"]),
        (Base.SYMBOL, pa.array([True]), ["true"]),
        (Base.NUMBER, HALVES, [1, -2]),
        (Base.UNSIGNED, HALVES[:1], [1]),
        (Base.FLOAT, pa.array([np.float16(0.5), np.float16("inf")]), [0.5, float("inf")]),
    ],
)
def test_what_says_the_same_is_taken(base: Base, array: pa.Array, expected: list[object]) -> None:
    assert values(base, array) == expected


@pytest.mark.parametrize(
    ("base", "array"),
    [
        (Base.NUMBER, pa.array([1.0, 1.5])),
        (Base.NUMBER, pa.array([2.0**60])),
        (Base.NUMBER, pa.array([float("inf")])),
        (Base.NUMBER, pa.array([np.float16(1.5)])),
        (Base.SYMBOL, HALVES),
        (Base.NUMBER, pa.array([Decimal("1.50")])),
        (Base.NUMBER, pa.array([date(2026, 11, 15)])),
        (Base.FLOAT, pa.array([True])),
        (Base.SYMBOL, pa.array([1])),
        (Base.SYMBOL, pa.array([(1, 2, 3)], pa.month_day_nano_interval())),
    ],
)
def test_what_does_not_is_not(base: Base, array: pa.Array) -> None:
    with refused("E0502"):
        values(base, array)


def test_there_and_back_again() -> None:
    program = ".decl opening(day: symbol, is_open: number, visitors: number)\n.input opening\n"
    frame = pd.DataFrame(
        {"day": [date(2026, 11, 15), date(2026, 11, 16)], "is_open": [True, False], "visitors": [7.0, 0.0]}
    )
    with elastalog.open(program, {"opening": frame}) as db:
        assert sorted(db["opening"]) == [("2026-11-15", 1, 7), ("2026-11-16", 0, 0)]
        back = db["opening"].sort().to_arrow(types={"day": "date32", "is_open": pa.bool_()})
        assert back.to_pylist()[0] == {"day": date(2026, 11, 15), "is_open": True, "visitors": 7}
        assert db["opening"].to_pandas(types={"is_open": "bool"})["is_open"].dtype == bool
        for types in ({"day": "bool"}, {"day": "no type"}, {"visitors": np.int8}, {"night": "bool"}):
            with pytest.raises(ElastalogError):
                db["opening"].to_arrow(types=types)


DAY = datetime(2026, 11, 1)


@pytest.mark.parametrize("times", [[DAY, DAY], [DAY, None], [DAY, DAY.replace(hour=9)], [None]])
@pytest.mark.parametrize("how", ["pandas", "arrow", "file", "apply"])
def test_timestamps_that_are_all_midnights_are_warned_of_and_can_come_back_as_dates(tmp_path, how, times):
    table = pa.table({"day": pa.array(times, pa.timestamp("ns"))})
    parquet.write_table(table, tmp_path / "got.parquet")
    facts = {"pandas": table.to_pandas(), "arrow": table, "file": tmp_path / "got.parquet", "apply": []}[how]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        db = elastalog.open(".decl got(day: symbol)", {"got": facts}, bad_rows="skip")
        if how == "apply":
            db.apply({"got": table.drop_null()})
    are_dates = times[0] is not None and DAY.replace(hour=9) not in times
    found = [one.message.diagnostic.code for one in told]
    assert found == ["E0536"] * are_dates + ["E0504"] * (None in times and how != "apply")
    if are_dates:
        assert db["got"].to_arrow(types={"day": "date32"})["day"].to_pylist() == [DAY.date()]
    elif times[0]:
        with pytest.raises(ElastalogError, match=r"timestamp\[us\]"):
            db["got"].to_arrow(types={"day": "date32"})


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        ((DAY.date(), 1), 'write `"2026-11-01"`, in Python `day.isoformat()`'),
        ((pd.Timestamp(DAY), 1), 'write `"2026-11-01"`, in Python `day.date().isoformat()`'),
        ((DAY.replace(hour=9), 1), 'write `"2026-11-01T09:00:00"`, in Python `day.isoformat()`'),
        ((pd.NaT, 1), "a missing value"),
        ((5, 1), 'write `"5"`, in Python `str(5)`'),
        (("tea", 8.0), "write `8`, in Python `int(8.0)`"),
        (("tea", "12"), "write `12`, in Python `int('12')`"),
        (("tea", 8.5), "declare it as `number: float`, or give whole numbers: in Python `round(x)`"),
        ((10**5000, 1), "convert the values first"),
        (("tea", "9" * 5000), "convert the values first"),
        (("tea", float("nan")), "convert the values first"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_to_write(row, advice):
    db = elastalog.open(".decl stock(name: symbol, number: number)")
    for rows in ([row], [dict(zip(("name", "number"), row, strict=True))]):
        with refused(told=advice):
            db.apply({"stock": rows})


FRAME = pd.DataFrame({"x": ["a"], "y": ["b"]})
LATE = '.decl late(c: symbol, n: number)\nlate("x", 7).\nlate("x", 8).\n.decl edge(x: symbol, y: symbol)'


@pytest.mark.parametrize(
    ("call", "code", "advice"),
    [
        (lambda db: db.explain("late(x, _)"), "E0608", 'if `x` is a text, write `"x"`'),
        (lambda db: db.explain('late("x", N)'), "E0608", "`query` finds all"),
        (lambda db: db.explain("late", ("x", 7)), "E0609", '`("late", (…))`'),
        (lambda db: db.query("?- late(C, N)."), "E0618", "leave `?-` out"),
        (lambda db: db.query("late(C, N) :- N > 5"), "E0618", "write `late(C, N), N > 5`"),
        (lambda db: db.apply({"edge": FRAME.set_index("x")}), "E0518", "give `frame.reset_index()`: the index has"),
        (lambda db: db.apply({"edge": FRAME.itertuples()}), "E0501", "`itertuples(index=False)`"),
        (lambda db: db.apply({"edge": {"x": ["a"], "y": ["b"]}}), "E0502", "`pandas.DataFrame(…)`"),
        (lambda db: db.apply({"edge": [Fact("late", ("a", 1))]}), "E0502", 'facts of `late` under its name: `{"late"'),
    ],
)
def test_a_habit_of_elsewhere_is_told_what_to_write_here(call, code, advice):
    with elastalog.open(LATE) as db, refused(code, told=advice):
        call(db)


def test_facts_of_proofs_are_rows_of_their_relation() -> None:
    with elastalog.open(LATE) as db:
        leaves = db.explain('late("x", 7)').explicit_facts
        db.apply({"edge": [Fact("edge", ("a", "b")), ("c", "d")]}, {"late": leaves})
        assert (set(db["edge"]), set(db["late"])) == ({("a", "b"), ("c", "d")}, {("x", 8)})
    named = ".decl said(relation: symbol, values: symbol)"
    with elastalog.open(named, {"said": [Fact("said", "x")]}) as db:
        assert set(db["said"]) == {("said", "x")}


def test_a_relation_is_compared_with_sets_and_with_others() -> None:
    with elastalog.open(".decl e, f(x: number)", {"e": [(1,), (2,)], "f": [(2,), (3,)]}) as db:
        e, f = db["e"], db["f"]
        assert e == {(1,), (2,)} == e
        assert e == db["e"]
        assert e != f
        assert e != [(1,), (2,)]
        assert e - f == {(1,)}
        assert {(1,), (9,)} - e == {(9,)}
        assert e & f == {(2,)}
        assert e | f == {(1,), (2,), (3,)}
        assert len({e, e}) == 1
        db.apply(deleted={"e": [(1,)]})
        assert e == {(2,)}


@pytest.mark.parametrize("place", [0, slice(2), (1, 2)])
def test_facts_have_no_places(place: object) -> None:
    with elastalog.open(".decl e(x: number, y: number)", {"e": [(1, 2)]}) as db:
        with pytest.raises(TypeError, match=r"sort\(\)\.head\(3\)"):
            db["e"][place]
        with pytest.raises(AttributeError, match="that is a column"):
            db["e"]["x"]


@pytest.mark.parametrize("name", ["columns", "to_list", "to_dicts", "to_csv"])
def test_a_relation_says_what_to_write_for_a_member_of_data_frames(name):
    with elastalog.open(LATE) as db, pytest.raises(AttributeError, match=f"no attribute {name!r}: .*`.*relation"):
        getattr(db["late"], name)


def test_a_missing_number_of_a_data_frame_is_a_missing_value() -> None:
    program = ".decl r(x: number)\n.input r\n"
    frame = pd.DataFrame({"x": [1, None, 3]})
    with elastalog.open(program, {"r": frame}, bad_rows="skip") as db:
        assert sorted(db["r"]) == [(1,), (3,)]
        assert db.reports[0].first_bad[0].line == 2


def test_half_floats_of_data_frames_and_files(tmp_path: Path) -> None:
    program = ".decl r(x: number)\n.input r\n"
    parquet.write_table(pa.table({"x": HALVES}), tmp_path / "r.parquet")
    for facts in (tmp_path, {"r": pd.DataFrame({"x": np.array([1, -2], np.float16)})}):
        with elastalog.open(program, facts) as db:
            assert set(db["r"]) == {(1,), (-2,)}
    (tmp_path / "p.dl").write_text(program)
    result = run("query", tmp_path / "p.dl", "-F", tmp_path, "r(X)")
    assert (result.exit_code, sorted(result.output.split())) == (0, ["-2", "1"])


def test_versions_that_pandas_takes_for_numbers_are_to_be_read_as_texts() -> None:
    frame = pd.DataFrame({"name": ["log", "http"], "version": [1.10, 1.9]})
    with pytest.raises(elastalog.ElastalogError, match=r'E0502(.|\n)*dtype=\{"version": str\}'):
        elastalog.open(".decl package(name: symbol, version: symbol)", {"package": frame})


def test_bad_rows_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("a,x\nk0,p\nk1,q\nk2,r\nk3,p\n")
    with pytest.raises(elastalog.ElastalogError) as raised:
        elastalog.open(".decl n(a: symbol, x: number)", facts={"n": tmp_path / "n.csv"})
    assert [str(one.location).rpartition(":")[2] for one in raised.value.diagnostics] == ["2", "3", "4"]
