"""Diff files: the changes of an update, as text and as tables."""

from __future__ import annotations

import contextlib
import gzip
import math
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.diff import Diff, parse_diff, read_diff, update_files
from elastalog.relations.schema import Column, Schema
from tests.pipeline.schemas import EDGE, FLAG, PAIR
from tests.refusals import refused
from tests.tables import table

MIXED = Schema("mixed", (Column("u", Base.UNSIGNED), Column("f", Base.FLOAT)))
SCHEMAS = {schema.name: schema for schema in (EDGE, PAIR, FLAG, MIXED)}


def plain(diff: Diff) -> tuple[dict, dict]:
    sides = []
    for side in (diff.inserted, diff.deleted):
        assert all(table.schema == SCHEMAS[name].arrow() for name, table in side.items())
        sides.append({name: [tuple(row.values()) for row in table.to_pylist()] for name, table in side.items()})
    return sides[0], sides[1]


def test_changes_are_grouped_by_relation_and_sign():
    text = """// the first update
+edge(1, "a").
-edge(2,"b").   // gone

  + pair( -3 , 0x1f ) .
+edge(4, "c")
-flag().
"""
    assert plain(parse_diff(text, "u.diff", SCHEMAS)) == (
        {"edge": [(1, "a"), (4, "c")], "pair": [(-3, 31)]},
        {"edge": [(2, "b")], "flag": [()]},
    )


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing\n", "\ufeff"])
def test_nothing_is_an_empty_update(text):
    assert plain(parse_diff(text, "u.diff", SCHEMAS)) == ({}, {})


@pytest.mark.parametrize("text", ["+edge(1, 2).", "-edge(1, 2).\n" * 1000])
def test_changes_in_the_place_of_a_path_are_told_from_one(text):
    with refused(match=r"edge\(1, 2\).* is a change, not the path of a file", told='`db.apply({"edge": [(1, 2)]})`'):
        read_diff(text, SCHEMAS)


def test_windows_line_ends():
    assert plain(parse_diff('+edge(1,"a").\r\n-edge(2,"b").\r\n', "u", SCHEMAS)) == (
        {"edge": [(1, "a")]},
        {"edge": [(2, "b")]},
    )


def test_strings_have_the_escapes_of_the_language():
    text = r'+edge(1, "tab\t quote\" backslash\\ // ) ,").'
    assert plain(parse_diff(text, "u", SCHEMAS))[0] == {"edge": [(1, 'tab\t quote" backslash\\ // ) ,')]}


def test_constants_of_every_type():
    text = "+mixed(18446744073709551615, 1.5).\n+mixed(7u, -2).\n+mixed(0b11, 1e3).\n+mixed(1.2.3.4, inf)."
    assert plain(parse_diff(text, "u", SCHEMAS))[0] == {
        "mixed": [(2**64 - 1, 1.5), (7, -2.0), (3, 1000.0), (0x01020304, math.inf)]
    }
    assert plain(parse_diff("+pair(-9223372036854775808, 9223372036854775807).", "u", SCHEMAS))[0] == {
        "pair": [(-(2**63), 2**63 - 1)]
    }


@pytest.mark.parametrize(("line", "code", "message"), table(__file__, "bad lines are located"))
def test_bad_lines_are_located(line, code, message):
    with pytest.raises(ElastalogError) as error:
        parse_diff(f'+edge(1, "fine").\n{line}\n', "u.diff", SCHEMAS)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message, diagnostic.location) == (code, message, "u.diff:2")
    assert diagnostic.notes == (f"the row is `{line}`",)
    assert diagnostic.help


def test_an_unknown_relation_offers_the_nearest():
    with refused(help="did you mean `edge`?"):
        parse_diff("+edgs(1, 2).", "u.diff", SCHEMAS)


def test_all_bad_lines_are_reported_up_to_five():
    with pytest.raises(ElastalogError) as error:
        parse_diff("nonsense\n" * 10, "u.diff", SCHEMAS)
    assert [d.location for d in error.value.diagnostics] == [f"u.diff:{line}" for line in range(1, 6)]
    assert error.value.diagnostics[4].notes[1] == "5 more rows are bad"


@given(st.text(st.sampled_from('+-edge(1,"a\\).\n/ \r\0é'), max_size=40))
def test_any_text_is_an_update_or_diagnostics(text):
    # Anything but an ElastalogError fails the test.
    with contextlib.suppress(ElastalogError):
        assert isinstance(parse_diff(text, "u.diff", SCHEMAS), Diff)


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["u.diff", "u.txt", "u", "u.diff.gz", "packed.diff"])
def test_text_files(tmp_path, name):
    content = b'+edge(1, "a").\n'
    is_packed = name.endswith(".gz") or name.startswith("packed")
    (tmp_path / name).write_bytes(gzip.compress(content) if is_packed else content)
    assert plain(read_diff(tmp_path / name, SCHEMAS)) == ({"edge": [(1, "a")]}, {})


@pytest.mark.parametrize(
    "content", [b'"op","x","y"\n"+","1","a"\n', b"\xef\xbb\xbfop,x,y\r\n+,1,a\r\n", b"\xef\xbb\xbfop\tx\ty\n+\t1\ta\n"]
)
def test_tables_as_spreadsheets_write_them(tmp_path, content):
    (tmp_path / "edge.csv").write_bytes(content)
    assert plain(read_diff(tmp_path / "edge.csv", SCHEMAS)) == ({"edge": [(1, "a")]}, {})


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "u.diff").write_bytes(b'+edge(1, "a").\n+edge(2, "\xff").\n')
    with refused("E0505", location=f"{tmp_path / 'u.diff'}:2"):
        read_diff(tmp_path / "u.diff", SCHEMAS)


def test_a_missing_file(tmp_path):
    with refused("E0515"):
        read_diff(tmp_path / "none.diff", SCHEMAS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edge.csv", b'op,x,y\n+,1,"a,b"\n-,2,c\n'),
        ("edge.csv", b'y,op,x\r\n"a,b",+,1\r\nc,-,2\r\n'),
        ("007-edge.csv", b'op,x,y\n+,1,"a,b"\n-,2,c\n'),
        ("edge.tsv", b"op\tx\ty\n+\t1\ta,b\n-\t2\tc\n"),
        ("edge.csv", b'op;x;y\n+;1;"a,b"\n-;2;c\n'),
        ("edge.csv", b"op|x|y\n+|1|a,b\n-|2|c\n"),
        ("edge.csv.gz", gzip.compress(b'op,x,y\n+,1,"a,b"\n-,2,c\n', mtime=0)),
    ],
)
def test_tables_of_changes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert plain(read_diff(tmp_path / name, SCHEMAS)) == ({"edge": [(1, "a,b")]}, {"edge": [(2, "c")]})


def test_parquet_of_changes(tmp_path):
    pq.write_table(pa.table({"x": [1, 2], "y": ["a", "b"], "op": ["+", "-"]}), tmp_path / "edge.parquet")
    assert plain(read_diff(tmp_path / "edge.parquet", SCHEMAS)) == ({"edge": [(1, "a")]}, {"edge": [(2, "b")]})


def test_tables_of_nullary_changes(tmp_path):
    (tmp_path / "flag.csv").write_text("op\n-\n")
    assert plain(read_diff(tmp_path / "flag.csv", SCHEMAS)) == ({}, {"flag": [()]})


@pytest.mark.parametrize(("name", "content", "code", "message", "place"), table(__file__, "bad tables of changes"))
def test_bad_tables_of_changes(tmp_path, name, content, code, message, place):
    (tmp_path / name).write_text(content)
    with refused(code, message=message, location=f"{tmp_path / name}{place}"):
        read_diff(tmp_path / name, SCHEMAS)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("egde.csv", "call the file after its relation, as `edge.csv`"),
        ("may.csv", f"call the file after its relation ({', '.join(SCHEMAS)}), as `{next(iter(SCHEMAS))}.csv`"),
    ],
)
def test_a_file_of_changes_that_is_called_otherwise_is_told_how(tmp_path, name, advice):
    (tmp_path / name).write_text("op,x,y\n")
    with refused("E0521", help=f"{advice}, with a column `op` that holds `+` or `-`"):
        read_diff(tmp_path / name, SCHEMAS)


@pytest.mark.parametrize("mark", ["# monday", "% monday", "-- monday", "; monday"])
def test_a_comment_as_other_languages_write_it_is_told_the_mark(tmp_path, mark):
    (tmp_path / "a.diff").write_text(mark)
    with refused("E0520", help="write `//` before a comment"):
        read_diff(tmp_path / "a.diff", SCHEMAS)


@pytest.mark.parametrize("mark", ",;|\t")
def test_facts_become_an_update_as_is_advised(tmp_path, mark):
    file = tmp_path / "edge.csv"
    file.write_text("\n".join(mark.join(row) for row in [("x", "y"), ("1", "a"), ("2", "b")]))
    with refused("E0522", match="no column `op`") as told:
        read_diff(file, SCHEMAS)
    first, each = re.search("write `(.+?)` before its header, and `(.+?)` before each row", str(told.value)).groups()
    first, each = (text.replace("\\t", "\t") for text in (first, each))
    header, *rows = file.read_text().split("\n")
    file.write_text("\n".join([first + header, *(each + row for row in rows)]))
    assert plain(read_diff(file, SCHEMAS)) == ({"edge": [(1, "a"), (2, "b")]}, {})


def test_updates_come_in_natural_order(tmp_path):
    for name in ("10.diff", "9.diff", "update-2.csv", "update-11.parquet", ".hidden.diff", "notes.md", "1.bad.jsonl"):
        (tmp_path / name).write_text("")
    (tmp_path / "3").mkdir()
    assert [path.name for path in update_files(tmp_path)] == [
        "3", "9.diff", "10.diff", "update-2.csv", "update-11.parquet",
    ]  # fmt: skip
    with refused("E0523"):
        update_files(tmp_path / "none")


def test_a_folder_is_the_union_of_its_files(tmp_path):
    (tmp_path / "edge.csv").write_text("op,x,y\n+,1,a\n")
    (tmp_path / "more.diff").write_text('+edge(2, "b").\n-pair(1, 2).\n')
    assert plain(read_diff(tmp_path, SCHEMAS)) == ({"edge": [(1, "a"), (2, "b")]}, {"pair": [(1, 2)]})
