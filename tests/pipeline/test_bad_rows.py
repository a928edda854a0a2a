"""Bad rows: located and counted in every format, and handled by every policy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, FindingWarning, LimitReached
from elastalog.pipeline.files.policy import BadRows
from elastalog.pipeline.files.read import read_input
from elastalog.relations.rows import columns_of_rows
from elastalog.relations.schema import Column, Schema
from tests.pipeline.reading import read_facts
from tests.pipeline.schemas import EDGE, NAME, PAIR, one, relation
from tests.refusals import refused

# content; line, code and reason of the bad row; its text. Every file also has a good row.
BAD_TEXT = {
    "too few fields": (PAIR, b"1\t2\n3\n", 2, "E0501", "1 field for 2 columns", "3"),
    "too many fields": (PAIR, b"1\t2\t3\n1\t2\n", 1, "E0501", "3 fields for 2 columns", "1\t2\t3"),
    "empty line": (PAIR, b"1\t2\n\n", 2, "E0501", "a blank line is no row", ""),
    "not a number": (PAIR, b"1\t2\nx\t2\n", 2, "E0502", "`x` is not a number (`x`)", "x\t2"),
    "empty number": (PAIR, b"1\t2\n1\t\n", 2, "E0502", "an empty field is not a number (`y`)", "1\t"),
    "float": (PAIR, b"1\t2\r\n1\t2.0\r\n", 2, "E0502", "`2.0` is a float, and `y` is declared as number", "1\t2.0"),
    "foreign digits": (PAIR, "1\t2\n1\t٣\n".encode(), 2, "E0502", "`٣` is not a number (`y`)", "1\t٣"),
    "terminal escapes": (PAIR, b"1\t2\n\x1b[31m\t2\n", 2, "E0502", "`\\x1b[31m` is not a number (`x`)", "\x1b[31m\t2"),
    "overflow": (
        PAIR, b"1\t2\n9223372036854775808\t1\n", 2, "E0503", "`9223372036854775808` does not fit number `x`",
        "9223372036854775808\t1",
    ),
    "hexadecimal overflow": (
        PAIR, b"1\t2\n0xffffffffffffffff\t1\n", 2, "E0503", "`0xffffffffffffffff` does not fit number `x`",
        "0xffffffffffffffff\t1",
    ),
    "negative unsigned": (one(Base.UNSIGNED), b"1\n-1\n", 2, "E0503", "`-1` does not fit unsigned `v`", "-1"),
    "not unsigned": (one(Base.UNSIGNED), b"1\nx\n", 2, "E0502", "`x` is not an unsigned (`v`)", "x"),
    "float overflow": (one(Base.FLOAT), b"1\n1e999\n", 2, "E0503", "`1e999` does not fit float `v`", "1e999"),
    "not a float": (one(Base.FLOAT), b"1\n1_0\n", 2, "E0502", "`1_0` is not a float (`v`)", "1_0"),
    "bad UTF-8": (NAME, b"a\n\xff\n", 2, "E0505", "byte 0xff is not UTF-8", "\\xff"),
}  # fmt: skip


IGNORED = 'and `.pragma "extra-fields" "ignore"` does for all files'
LEFT_OUT = (
    "or let bad rows pass: `--bad-rows skip` leaves them out, `quarantine` sets them aside (in Python `bad_rows=`)"
)
QUOTES = 'if a text holds `,`, write it between quotes, `"a, b"`'
TITLE = "if these are the names of the columns: delete what stands above them, which is skipped as the header"
COMMENT = "if it is a comment, delete the line: fact files have none"
ALIKE = "give every row as many values as the relation has columns"


@pytest.mark.parametrize(
    ("data", "parameters", "advice"),
    [
        (b"x\ty\n1\t2\n", {}, "say how the file is written: `.input pair(headers=true)`"),
        (b"X,Y\n", {}, "say how the file is written: `.input pair(rfc4180=true, headers=true)`"),
        (b"1,2\n", {}, "say how the file is written: `.input pair(rfc4180=true)`"),
        (b"1;2\n", {}, 'say how the file is written: `.input pair(delimiter=";")`'),
        (b"1\t2\n", {"delimiter": ","}, 'say how the file is written: `.input pair(delimiter="\\t")`'),
        (b"1\t2\t3\n", {}, f'{ALIKE}; `.input pair(columns="0:1")` leaves the others out, {IGNORED}'),
        (b"1\n", {}, ALIKE),
        # One row among others is to be changed, not the way in which all are read.
        (b"1\t2\n3 4\n5\t6\n", {}, f"{ALIKE}; {LEFT_OUT}"),
        (b"1,2\n3;4\n5,6\n", {"delimiter": ","}, f"{ALIKE}; {LEFT_OUT}"),
        (b"1\t2\t3\n1\t2\n", {}, f"{ALIKE}; {LEFT_OUT}"),
        (b"1\t2\nx\ty\n5\t6\n", {}, "convert the values first, or declare the attribute with another type"),
        (
            b"x\ty\n1\ttwo\n5\t6\n7\t8\n",
            {},
            "if the file begins with the names of its columns: `.input pair(headers=true)`",
        ),
        (b"1\t2\n\n", {}, f"delete the line; {LEFT_OUT}"),
        # A title above the names of the columns, and above other rows.
        (b"# may\ny\tx\n1\t2\n", {"headers": "true"}, TITLE),
        (b"# may\nx\ty\n1\t2\n3\t4\n", {"headers": "true"}, TITLE),
        (b"x\ty\n# may\n1\t2\n", {"headers": "true"}, f"{COMMENT}; {LEFT_OUT}"),
        (b"x\ty\n// may\n1\t2\t3\n", {"headers": "true"}, f"{COMMENT}; {LEFT_OUT}"),
        # The mark that parts most rows.
        (b"for may\n1;2\n3;4\n", {}, 'say how the file is written: `.input pair(delimiter=";")`'),
    ],
)
def test_the_help_says_what_the_text_is_likely_to_need(tmp_path, data, parameters, advice):
    path = tmp_path / "pair.facts"
    path.write_bytes(data)
    with pytest.raises(ElastalogError) as error:
        read_facts(PAIR, path, parameters)
    assert error.value.diagnostics[0].help == advice


@pytest.mark.parametrize(
    ("data", "parameters", "advice"),
    [
        ("Smith, John,3\nJones,4\n", {"rfc4180": "true"}, f"{QUOTES}; {LEFT_OUT}"),
        ("Smith, John,3\nJones,4\n", {"delimiter": ","}, f"{QUOTES}, and `.input dep(rfc4180=true)`; {LEFT_OUT}"),
        (
            "Smith, John,3\n",
            {"rfc4180": "true"},
            f'{QUOTES}; `.input dep(rfc4180=true, columns="0:1")` leaves the others out, {IGNORED}',
        ),
    ],
)
def test_a_comma_in_a_text_is_to_be_quoted(tmp_path, data, parameters, advice):
    schema = Schema("dep", (Column("name", Base.SYMBOL), Column("years", Base.NUMBER)))
    path = tmp_path / "dep.facts"
    path.write_text(data)
    with refused(help=advice):
        read_facts(schema, path, parameters)
    path.write_text(data.replace("Smith, John", '"Smith, John"'))
    assert read_facts(schema, path, {"rfc4180": "true"}).table["name"].to_pylist()[0] == "Smith, John"


def test_rows_that_are_left_out_are_warned_of(tmp_path):
    path = tmp_path / "pair.facts"
    path.write_bytes(b"1\t2\nx\t2\n3\n")
    for policy, what in (("skip", "skipped"), ("quarantine", f"set aside in `{tmp_path}/pair.bad.jsonl`")):
        with pytest.warns(FindingWarning) as told:
            read_facts(PAIR, path, {}, BadRows(policy, folder=tmp_path))
        (found,) = [one.message.diagnostic for one in told]
        assert (found.severity, found.message) == ("warning", f"2 bad rows of `pair` {what}")
        assert found.location == f"{path}:2"


GUESSED = ", by which `name` is `ann`, `city` is `rome`, `years` is `70` (a guess by types: see that each is right)"
AGE = Schema("age", (Column("name", Base.SYMBOL), Column("city", Base.SYMBOL), Column("years", Base.NUMBER)))


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        (
            b"ann\t70\trome\n",
            'if the columns of the file are in another order: `.input age(columns="0:2:1")`' + GUESSED,
        ),
        (
            b"70\tann\trome\n",
            'if the columns of the file are in another order: `.input age(columns="1:2:0")`' + GUESSED,
        ),
        (b"7\trome\t9223372036854775808\n", "use a value the type can hold, or declare the attribute as `symbol`"),
        (
            b"ann\trome\t\n",
            "leave the row out, and keep optional values in a relation of their own: `elastalog explain-error E0502`",
        ),
        (b"ann\trome\tseventy\n", "convert the values first, or declare the attribute with another type"),
    ],
)
def test_the_help_says_in_which_order_the_columns_would_suit(tmp_path, row, advice):
    path = tmp_path / "age.facts"
    path.write_bytes(row)
    with refused(help=advice):
        read_facts(AGE, path, {})
    if "another order" in advice:
        order = advice.partition('columns="')[2][:5]
        assert read_facts(AGE, path, {"columns": order}).table.to_pylist() == [
            {"name": "ann", "city": "rome", "years": 70}
        ]


def check_bad(schema, path, parameters, tmp_path, line, code, reason, text):
    """One bad row, under every policy."""
    with refused(code) as error:
        read_facts(schema, path, parameters)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.message == f"bad row for `{schema.name}`: {reason}"
    assert diagnostic.location == f"{path}:{line}"
    assert [note[:12] for note in diagnostic.notes] == ["the row is `"] * bool(text)
    assert "\x1b" not in "".join(diagnostic.notes) + diagnostic.message
    assert diagnostic.help

    out = tmp_path / "out"
    result = read_facts(schema, path, parameters, BadRows("quarantine", folder=out))
    assert (result.table.num_rows, result.report.loaded, result.report.bad) == (1, 1, 1)
    assert result.report.quarantine == out / f"{schema.name}.bad.jsonl"
    assert [json.loads(entry) for entry in result.report.quarantine.read_text().splitlines()] == [
        {"file": str(path), "line": line, "code": code, "reason": reason, "text": text}
    ]

    result = read_facts(schema, path, parameters, BadRows("skip", most=1))
    assert (result.table.num_rows, result.report.bad, result.report.quarantine) == (1, 1, None)
    assert result.report.first_bad[0].location == f"{path}:{line}"

    with pytest.raises(LimitReached) as limit:
        read_facts(schema, path, parameters, BadRows("skip", most=0))
    assert [d.code for d in limit.value.diagnostics] == ["E0513", code]
    assert limit.value.diagnostics[0].message == (f"`{schema.name}` has more bad rows (1) than may be skipped (0)")


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_rows_of_text_files(tmp_path, case):
    schema, content, line, code, reason, text = BAD_TEXT[case]
    path = tmp_path / "r.facts"
    path.write_bytes(content)
    check_bad(schema, path, {}, tmp_path, line, code, reason, text)


@pytest.mark.parametrize(
    ("content", "line", "code", "reason", "text"),
    [
        (b'1,"two\nlines"\nx,b\n', 3, "E0502", "`x` is not a number (`x`)", "x,b"),
        (b'1,"a"b\n2,c\n', 1, "E0506", "field 2 is quoted wrongly", '1,"a"b'),
        (b'1,a\n2,"open\n', 2, "E0506", "field 2 is quoted wrongly", '2,"open'),
        (b'1,a\n2,"\xff"\n', 2, "E0505", "byte 0xff is not UTF-8", '2,"\\xff"'),
    ],
)
def test_bad_rows_of_quoted_files(tmp_path, content, line, code, reason, text):
    path = tmp_path / "r.csv"
    path.write_bytes(content)
    check_bad(EDGE, path, {"rfc4180": "true"}, tmp_path, line, code, reason, text)


def test_lines_are_counted_from_the_header(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(b"x\ty\n1\ta\nb\tc\n")
    check_bad(EDGE, path, {"headers": "true"}, tmp_path, 3, "E0502", "`b` is not a number (`x`)", "b\tc")


@pytest.mark.parametrize(
    ("bad_line", "code", "reason"),
    [
        (b"{", "E0507", "not JSON: expecting property name enclosed in double quotes"),
        (b"3", "E0507", "neither an object nor an array"),
        (b"[" * 100_000, "E0507", "not JSON: too deep"),
        (b"[1]", "E0501", "1 value for 2 columns"),
        (b'{"x": 1}', "E0501", "the row has no value for `y`"),
        (b'[1.0, "a"]', "E0502", "`x` is declared as number, but given as float `1.0`"),
        (b'[true, "a"]', "E0502", "`x` is declared as number, but given as bool `True`"),
        (b'[9223372036854775808, "a"]', "E0503", "`9223372036854775808` does not fit number `x`"),
        (b"[1, null]", "E0504", "`y` is null"),
        (b'[1, "\\ud800"]', "E0505", "`y` holds a lone surrogate"),
        (b'[1, "\xff"]', "E0505", "byte 0xff is not UTF-8"),
        (b'{"x": 1, "y": "a", "x": 2}', "E0518", "the object has `x` twice"),
        (b'[1e400, "a"]', "E0503", "`1e400` does not fit any type of numbers"),
        (b'[-1e400, "a"]', "E0503", "`-1e400` does not fit any type of numbers"),
        (b"[" + b"1" * 5000 + b', "a"]', "E0503", f"`{'1' * 60}…` (5,000 characters) does not fit any type of numbers"),
    ],
)
def test_bad_rows_of_json_lines(tmp_path, bad_line, code, reason):
    path = tmp_path / "edge.jsonl"
    path.write_bytes(b'[1, "a"]\n\n' + bad_line + b"\n")
    check_bad(EDGE, path, {}, tmp_path, 3, code, reason, bad_line.decode("utf-8", "backslashreplace"))


@pytest.mark.parametrize(
    ("bad_fact", "code", "reason"),
    [
        ('{"v": 1, "v": 2}', "E0518", "the object has `v` twice"),
        ("[1e400]", "E0503", "`1e400` does not fit any type of numbers"),
        ("[" + "7" * 5000 + "]", "E0503", f"`{'7' * 60}…` (5,000 characters) does not fit any type of numbers"),
        ('["x"]', "E0502", "`v` is declared as float, but given as str `'x'`"),
    ],
)
def test_bad_rows_of_lists_of_json(tmp_path, bad_fact, code, reason):
    (tmp_path / "r.json").write_text(f"[[1.5],\n {bad_fact}, [Infinity]]")
    found = relation(one(Base.FLOAT), {"IO": "json"})
    with pytest.raises(ElastalogError) as error:
        read_input(found, tmp_path, BadRows())
    assert [(d.code, d.message, d.location) for d in error.value.diagnostics] == [
        (code, f"bad row for `r`: {reason}", f"{tmp_path / 'r.json'}, element 2")
    ]
    result = read_input(found, tmp_path, BadRows("quarantine", folder=tmp_path))
    assert result.table.column(0).to_pylist() == [1.5, math.inf]
    assert json.loads((tmp_path / "r.bad.jsonl").read_text())["text"] == bad_fact


@pytest.mark.parametrize(
    ("xs", "code", "reason", "text"),
    [
        (pa.array([1, None]), "E0504", "`x` is null", "None, 'b'"),
        (
            pa.array([1, 2**63], pa.uint64()),
            "E0503",
            "`9223372036854775808` does not fit number `x`",
            "9223372036854775808, 'b'",
        ),
    ],
)
def test_bad_rows_of_parquet_files(tmp_path, xs, code, reason, text):
    path = tmp_path / "edge.parquet"
    pq.write_table(pa.table({"x": xs, "y": ["a", "b"]}), path)
    check_bad(EDGE, path, {}, tmp_path, 2, code, reason, text)


def test_texts_of_parquet_files_that_are_not_utf8(tmp_path):
    offsets = pa.py_buffer(np.array([0, 1, 3], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab\xff")])
    path = tmp_path / "edge.parquet"
    pq.write_table(pa.table({"x": [1, 2], "y": texts}), path)
    check_bad(EDGE, path, {}, tmp_path, 2, "E0505", "`y` is not UTF-8", "2, 'b\\\\xff'")


def test_five_bad_rows_are_shown_and_the_rest_counted(tmp_path):
    """And of those that are bad for one reason only the first."""
    path = tmp_path / "pair.facts"
    path.write_bytes(b"a\t1\n" + b"".join(b"%c\t1\n" % letter for letter in b"abcdefg"))
    with pytest.raises(ElastalogError) as error:
        read_facts(PAIR, path)
    diagnostics = error.value.diagnostics
    assert [d.location for d in diagnostics] == [f"{path}:{line}" for line in (1, 3, 4, 5, 6)]
    assert [len(d.notes) for d in diagnostics] == [1, 1, 1, 1, 2]
    assert diagnostics[-1].notes[1] == "3 more rows are bad"


def test_long_text_is_cut_in_messages(tmp_path):
    path = tmp_path / "pair.facts"
    path.write_bytes(b"1\t" + b"9" * 100_000 + b"\n")
    with refused(message=f"bad row for `pair`: `{'9' * 60}…` (100,000 characters) does not fit number `y`"):
        read_facts(PAIR, path)


def test_a_quarantine_of_an_earlier_run_is_removed(tmp_path):
    path = tmp_path / "pair.facts"
    path.write_bytes(b"1\t2\n")
    (tmp_path / "pair.bad.jsonl").write_text("old\n")
    assert read_facts(PAIR, path, {}, BadRows("quarantine", folder=tmp_path)).report.bad == 0
    assert not (tmp_path / "pair.bad.jsonl").exists()


@pytest.mark.parametrize("base", [Base.NUMBER, Base.UNSIGNED, Base.FLOAT])
@pytest.mark.parametrize(
    ("text", "is_separated"),
    [
        *((text, True) for text in ("3,5", "-1,200", "1_000", "1.200,5", "1 200", "1’200", "1.200.000", "12345,6789")),
        *((text, False) for text in ("1,2,3", "01.11.2026", "12:30", "Ulm, Bonn", "_", "3,", "030 1234")),
    ],
)
def test_a_number_with_separators_or_a_decimal_comma(tmp_path, base, text, is_separated):
    path = tmp_path / "v.csv"
    path.write_text(f"{text}\n1\n2\n")
    with pytest.raises(ElastalogError) as error:
        read_facts(one(base), path, {"delimiter": "|"})
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.location) == ("E0502", f"{path}:1")
    assert (diagnostic.help == SEPARATED) == is_separated


SEPARATED = "write digits without separators, as in `1200`; the decimal sign of a float is a point, as in `3.5`"


def test_a_number_with_separators_in_a_row_of_python():
    for base, text, advice in (
        (Base.FLOAT, "3,5", SEPARATED),
        (Base.NUMBER, "1,200", SEPARATED),
        (Base.NUMBER, "1_000", "write `1000`, in Python `int('1_000')`"),
        (Base.NUMBER, "far", "convert the values first, or declare the attribute with another type"),
    ):
        with refused(help=advice):
            columns_of_rows(one(base), [(text,)])


def test_a_number_with_separators_is_no_name_of_a_column(tmp_path):
    path = tmp_path / "road.csv"
    path.write_text("Ulm;Bonn;1_000\nUlm;Hof;4\n")
    program = ".decl road(from: symbol, to: symbol, km: number)"
    with pytest.raises(ElastalogError, match=r"E0502.*`1_000` is not a number"):
        elastalog.open(program, {"road": path})


def test_a_blank_before_a_quote_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('x, y\n1, "b, c"\n')
    program = '.decl r(x: number, y: symbol)\n.input r(filename="r.csv", rfc4180=true, headers=true)\n'
    with pytest.raises(ElastalogError, match="a blank stands before some") as error:
        elastalog.open(program, tmp_path)
    directive = error.value.diagnostics[0].help.split("`")[1]
    program = f"{program.splitlines()[0]}\n{directive}\n"
    assert list(elastalog.open(program, tmp_path)["r"]) == [(1, "b, c")]
