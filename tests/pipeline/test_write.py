"""Writing fact files: as Soufflé does, whole or not at all, and never what would be read back as something else."""

from __future__ import annotations

import gzip
import json
import math
import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.analysis.program import Base
from elastalog.analysis.values import plain_text
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.paths import replacing, resolve_under
from elastalog.pipeline.files.write import write_facts, write_output
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS
from tests.pipeline.reading import read_facts
from tests.pipeline.schemas import EDGE, FLAG, one, relation
from tests.refusals import refused

MIXED = Schema(
    "mixed", (Column("n", Base.NUMBER), Column("u", Base.UNSIGNED), Column("f", Base.FLOAT), Column("s", Base.SYMBOL))
)


def table(schema: Schema, rows: list[tuple]) -> pa.Table:
    dictionary = Dictionary()
    return to_table(schema, to_words(schema, rows, dictionary), dictionary)


def test_plain_text_is_tab_separated_without_header(tmp_path):
    write_facts(EDGE, table(EDGE, [(1, "a"), (-2, 'say "b"'), (3, "")]), tmp_path / "edge.csv")
    assert (tmp_path / "edge.csv").read_bytes() == b'1\ta\n-2\tsay "b"\n3\t\n'


@pytest.mark.parametrize("texts", [[""], ["", "\x01"], ["a\x0bb", "é"], [":"]])
def test_texts_that_come_close_to_special_ones_are_plain(tmp_path, texts):
    rows = [(number, text) for number, text in enumerate(texts)]
    for delimiter in ("\t", "::"):
        write_facts(EDGE, table(EDGE, rows), tmp_path / "edge.csv", {"delimiter": delimiter})
        expected = "".join(f"{number}{delimiter}{text}\n" for number, text in rows)
        assert (tmp_path / "edge.csv").read_bytes() == expected.encode()


def test_no_facts_are_an_empty_file(tmp_path):
    write_facts(EDGE, table(EDGE, []), tmp_path / "edge.csv")
    assert (tmp_path / "edge.csv").read_bytes() == b""


def test_a_nullary_fact_is_a_pair_of_parentheses(tmp_path):
    write_facts(FLAG, table(FLAG, [()]), tmp_path / "flag.csv")
    assert (tmp_path / "flag.csv").read_bytes() == b"()\n"


@pytest.mark.parametrize("name", ["flag.csv", "flag.csv.gz", "flag.jsonl", "flag.parquet"])
@pytest.mark.parametrize("count", [0, 1])
def test_nullary_facts_are_read_back(tmp_path, name, count):
    write_facts(FLAG, table(FLAG, [()] * count), tmp_path / name)
    assert read_facts(FLAG, tmp_path / name).table.num_rows == count


def test_header_and_delimiter(tmp_path):
    write_facts(EDGE, table(EDGE, [(1, "a")]), tmp_path / "edge.csv", {"headers": "true", "delimiter": "::"})
    assert (tmp_path / "edge.csv").read_bytes() == b"x::y\n1::a\n"


def test_rfc4180_quotes_texts(tmp_path):
    facts = [(1, "plain"), (2, "a,b"), (3, 'say "no"'), (4, "two\nlines"), (5, "")]
    write_facts(EDGE, table(EDGE, facts), tmp_path / "edge.csv", {"rfc4180": "true"})
    assert (tmp_path / "edge.csv").read_bytes() == b'1,"plain"\n2,"a,b"\n3,"say ""no"""\n4,"two\nlines"\n5,""\n'


@pytest.mark.parametrize(("text", "shown"), [("a\tb", "`a\\tb`"), ("a\nb", "`a\\nb`"), ("a\r", "`a\\r`")])
def test_a_symbol_that_would_break_its_line_is_refused(tmp_path, text, shown):
    (tmp_path / "edge.csv").write_text("as before\n")
    with refused("E0516") as error:
        write_facts(EDGE, table(EDGE, [(1, "fine"), (2, text)]), tmp_path / "edge.csv")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.message == f"symbol {shown} of `edge` cannot be written as plain text"
    assert diagnostic.help == "use rfc4180=true: `.output edge(rfc4180=true)`"
    assert (tmp_path / "edge.csv").read_text() == "as before\n"
    assert os.listdir(tmp_path) == ["edge.csv"]


def test_a_mark_at_the_beginning_is_quoted_or_refused(tmp_path):
    """A file that begins with U+FEFF is read without it."""
    names, marked = one(Base.SYMBOL), [("\ufeffx",), ("\ufeffy",)]
    path = tmp_path / "r.csv"
    for form in ({"rfc4180": "true"}, {"headers": "true"}, {"headers": "true", "rfc4180": "true"}):
        write_facts(names, table(names, marked), path, form)
        assert read_facts(names, path, form).table.to_pylist() == [{"v": value} for (value,) in marked]
    with pytest.raises(ElastalogError, match=r"symbol `.ufeffx` of `r` cannot be written as plain text") as error:
        write_facts(names, table(names, marked), path)
    assert error.value.diagnostics[0].notes == (
        "`v` holds a byte order mark, so the row would be read back as another one",
    )
    write_facts(names, table(names, [("x",), *marked]), path)  # later it is text
    assert read_facts(names, path).table.to_pylist() == [{"v": "x"}, {"v": "\ufeffx"}, {"v": "\ufeffy"}]


def test_a_delimiter_that_occurs_in_numbers_is_refused(tmp_path):
    with refused("E0516"):
        write_facts(EDGE, table(EDGE, [(-1, "a")]), tmp_path / "edge.csv", {"delimiter": "-"})


ROWS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 2**64 - 1),
        st.floats(allow_nan=False).map(lambda value: value + 0.0),
        st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(['"', '""', "\r\n", "\\E", "|", ","]),
    ),
    max_size=6,
)


@given(
    ROWS,
    st.sampled_from(
        [
            ("mixed.csv", {"rfc4180": "true"}),
            ("mixed.csv", {"rfc4180": "true", "headers": "true", "delimiter": "|"}),
            ("mixed.csv.gz", {"rfc4180": "true", "delimiter": "\\E"}),
            ("mixed.jsonl", {}),
            ("mixed.jsonl.gz", {}),
            ("mixed.parquet", {}),
        ]
    ),
)
def test_what_was_written_is_read_back(tmp_path_factory, rows, form):
    name, parameters = form
    path = tmp_path_factory.mktemp("written", numbered=True) / name
    write_facts(MIXED, table(MIXED, rows), path, parameters)
    assert [tuple(row.values()) for row in read_facts(MIXED, path, parameters).table.to_pylist()] == rows


def test_plain_text_of_every_type_is_read_back(tmp_path):
    rows = [(-(2**63), 2**64 - 1, math.inf, "😀 "), (2**63 - 1, 0, 5e-324, ""), (0, 1, 0.1, '"')]
    write_facts(MIXED, table(MIXED, rows), tmp_path / "mixed.csv")
    assert [tuple(row.values()) for row in read_facts(MIXED, tmp_path / "mixed.csv").table.to_pylist()] == rows


def test_blocks_follow_one_another(tmp_path, monkeypatch):
    monkeypatch.setattr(SETTINGS, "rows_written_at_once", 3)
    rows = [(i, f"s{i}") for i in range(10)]
    write_facts(EDGE, pa.concat_tables([table(EDGE, rows[:4]), table(EDGE, rows[4:])]), tmp_path / "edge.csv")
    assert (tmp_path / "edge.csv").read_text() == "".join(f"{i}\ts{i}\n" for i in range(10))


def test_special_floats_are_valid_json(tmp_path):
    rows = [(math.nan,), (math.inf,), (-math.inf,), (0.5,)]
    write_facts(one(Base.FLOAT), table(one(Base.FLOAT), rows), tmp_path / "r.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert lines == [{"v": "NaN"}, {"v": "Infinity"}, {"v": "-Infinity"}, {"v": 0.5}]


def test_gzip_of_the_same_facts_is_the_same_file(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_facts(EDGE, table(EDGE, [(1, "a")]), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == b"1\ta\n"


def write_half_and_stop(path):
    with replacing(path) as out:
        out.write(b"half of")
        raise KeyboardInterrupt


def test_an_interrupted_run_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "edge.csv"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half_and_stop(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["edge.csv"]


def test_a_folder_that_cannot_be_is_a_diagnostic(tmp_path):
    (tmp_path / "taken").write_text("a file")
    path = tmp_path / "taken" / "edge.csv"
    with refused("E0517", message=f"cannot write `{path}`: File exists"):
        write_facts(EDGE, table(EDGE, []), path)


# --- the outputs of a relation -------------------------------------------------------------------------------------


def test_outputs_go_where_the_directives_say(tmp_path):
    facts = table(EDGE, [(1, "a")])
    edge = relation(EDGE, {}, {"compress": "true"}, {"filename": "sub/e.jsonl"}, kind="output")
    assert write_output(edge, facts, tmp_path) == [
        tmp_path / "edge.csv",
        tmp_path / "edge.csv.gz",
        tmp_path / "sub/e.jsonl",
    ]
    assert (tmp_path / "edge.csv").read_text() == "1\ta\n"
    assert gzip.decompress((tmp_path / "edge.csv.gz").read_bytes()) == b"1\ta\n"
    assert (tmp_path / "sub/e.jsonl").read_text() == '{"x": 1, "y": "a"}\n'


def test_standard_output_has_rulers(tmp_path, capsysbinary):
    facts = table(EDGE, [(1, "a"), (2, "b")])
    edge = relation(EDGE, {"IO": "stdout"}, {"IO": "stdout", "headers": "true"}, kind="output")
    assert write_output(edge, facts, tmp_path) == []
    assert capsysbinary.readouterr().out.decode() == (
        "---------------\nedge\n===============\n1\ta\n2\tb\n===============\n"
        "---------------\nedge\nx\ty\n===============\n1\ta\n2\tb\n===============\n"
    )


def test_the_size_is_printed(tmp_path, capsysbinary):
    write_output(relation(EDGE, {}, kind="printsize"), table(EDGE, [(1, "a")]), tmp_path)
    assert capsysbinary.readouterr().out == b"edge\t1\n"


# --- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relative", ["/etc/passwd", "../x", "a/../../x", "a/..", "", "a\0b", "..\\x", "C:\\x", "\\\\host\\x"]
)
def test_paths_that_leave_the_root_are_refused(tmp_path, relative):
    with refused("E0512"):
        resolve_under(tmp_path, relative)


@pytest.mark.parametrize("relative", ["edge.facts", "sub/edge.facts", "..edge", "./edge.facts"])
def test_paths_below_the_root_are_fine(tmp_path, relative):
    assert resolve_under(tmp_path, relative) == tmp_path / relative


def test_symbolic_links_may_not_lead_out(tmp_path):
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (tmp_path / "outside.facts").write_text("1\ta\n")
    (root / "edge.facts").symlink_to(tmp_path / "outside.facts")
    (root / "up").symlink_to(tmp_path)
    (root / "inside").symlink_to(root / "real")
    (root / "loop").symlink_to(root / "loop")
    for relative in ("edge.facts", "up/outside.facts"):
        with refused(notes=("a symbolic link leads out of the folder",)):
            resolve_under(root, relative)
    assert resolve_under(root, "inside/x") == root / "inside/x"
    with pytest.raises(ElastalogError):
        resolve_under(root, "loop/x")


def test_the_root_itself_may_be_a_symbolic_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert resolve_under(tmp_path / "link", "edge.facts") == tmp_path / "link" / "edge.facts"


FLOATS = {
    1.5: "1.5", 100.0: "100", 0.1: "0.1", 1e15: "1000000000000000", 1e16: "10000000000000000", 1.5e17: "1.5e+17",
    1e20: "1e+20", 0.0001: "0.0001", 0.00001: "1e-05", -1.5e-7: "-1.5e-07", math.inf: "inf", -math.inf: "-inf",
    -3.0: "-3", 2.0**53 + 2: "9007199254740994",
}  # fmt: skip


def test_floats_are_laid_out_as_by_cpp(tmp_path):
    write_facts(one(Base.FLOAT), table(one(Base.FLOAT), [(value,) for value in FLOATS]), tmp_path / "r.csv")
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines == list(FLOATS.values())
    assert list(map(float, lines)) == list(FLOATS)


def test_floats_inside_of_records_are_laid_out_the_same_way():
    assert plain_text((2.0, (0.5, 1e16), None)) == "[2, [0.5, 10000000000000000], nil]"
