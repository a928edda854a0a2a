"""Names decide: which column given is which column declared, wherever the columns come from."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, FindingWarning
from elastalog.pipeline.files.diff import read_diff
from elastalog.relations.schema import Column, Schema, column_order
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from tests.pipeline.reading import read_facts
from tests.refusals import refused

EDGE = Schema("edge", (Column("from", Base.NUMBER), Column("to", Base.NUMBER)))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("from", "to"), [0, 1]),
        (("to", "from"), [1, 0]),
        (("To", "FROM"), [1, 0]),
        (("src", "dst"), [0, 1]),
        (("0", "1"), [0, 1]),
        (("x", "x"), [0, 1]),
    ],
)
def test_names_decide_and_position_where_none_is_known(names, order):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert column_order(EDGE, names) == order
    is_doubtful = names in (("src", "dst"), ("x", "x"))
    assert [one.message.diagnostic.code for one in told] == ["E0518"] * is_doubtful


def test_columns_that_are_taken_by_position_are_named():
    with pytest.warns(FindingWarning) as told:
        elastalog.open(".decl edge(from: number, to: number)", {"edge": pd.DataFrame({"src": [1], "dst": [2]})})
    (found,) = [one.message.diagnostic for one in told]
    assert found.message == "none of the columns of the table has the name of an attribute: they are taken by position"
    assert found.notes == ("declared as edge(from: number, to: number)", "`src` as `from`, `dst` as `to`")
    for unnamed in (pd.DataFrame([(1, 2)]), pl.DataFrame([(1, 2)], orient="row"), np.array([[1, 2]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            elastalog.open(".decl edge(from: number, to: number)", {"edge": unnamed})


def test_a_column_alone_is_taken_whatever_it_is_called():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db = elastalog.open(".decl r(one: number)", {"r": pd.DataFrame([(7,)], columns=["years"])})
    assert list(db["r"]) == [(7,)]


def test_columns_of_different_types_are_told_of_too():
    """If they are in another order, the error that follows names columns that the frame does not have."""
    named, declared = pd.DataFrame([("ann", 7)], columns=["who", "years"]), ".decl r(name: symbol, age: number)"
    with pytest.warns(UserWarning, match=r"E0518(.|\n)*`who` as `name`, `years` as `age`"):
        assert list(elastalog.open(declared, {"r": named})["r"]) == [("ann", 7)]
    with (
        pytest.warns(UserWarning, match="`years` as `name`, `who` as `age`"),
        pytest.raises(elastalog.ElastalogError, match="E0502"),
    ):
        elastalog.open(declared, {"r": named[["years", "who"]]})


def test_a_name_itself_goes_before_one_that_differs_in_case():
    both = Schema("r", (Column("x", Base.NUMBER), Column("X", Base.NUMBER)))
    assert column_order(both, ("X", "x")) == [1, 0]


@pytest.mark.parametrize("names", [("to", "src"), ("src", "FROM"), ("to", "to"), ("From", "FROM"), ("to", "TO")])
def test_one_known_name_requires_them_all(names):
    with refused("E0518") as error:
        column_order(EDGE, names)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.notes == (
        "declared as edge(from: number, to: number)",
        f"the columns given are: `{names[0]}`, `{names[1]}`",
    )


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("to", "form"), "rename `form` to `from`, or rename the attribute:"),
        (("to", "fr"), "name a column `from`, or rename the attribute:"),
        (("to", "From_Node"), "rename `From_Node` to `from`, or rename the attribute:"),
        (("to", "weight"), "name a column `from`, or rename the attribute:"),
    ],
)
def test_only_a_column_that_is_called_much_alike_is_to_be_renamed(names, advice):
    with refused("E0518", told=advice):
        column_order(EDGE, names)


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (("op", "to", "src"), "E0518", "the table has no column `from` of relation `edge`"),
        (("op", "a"), "E0501", "relation `edge` has 2 columns, the table has 1"),
    ],
)
def test_columns_apart_are_not_among_those_declared(names, code, message):
    changes = Schema("edge", (Column("op", Base.SYMBOL), *EDGE.columns))
    with refused(code, match=message) as raised:
        column_order(changes, names, apart=("op",))
    assert raised.value.diagnostics[0].notes[0] == "declared as edge(from: number, to: number)"


def test_columns_apart_are_not_told_as_taken_by_position():
    changes = Schema("edge", (Column("op", Base.SYMBOL), *EDGE.columns))
    with pytest.warns(UserWarning, match="taken by position") as told:
        assert column_order(changes, ("a", "op", "b"), apart=("op",)) == [1, 0, 2]
    assert told[0].message.diagnostic.notes == (
        "declared as edge(from: number, to: number)",
        "`a` as `from`, `b` as `to`",
    )


def test_a_column_that_is_there_twice():
    with refused(match="the table has column `from` more than once", help="give every column a name of its own"):
        column_order(EDGE, ("from", "from"))


def test_another_number_of_columns_lists_both_sides():
    with pytest.raises(ElastalogError) as error:
        column_order(EDGE, ("a", "b", "when"))
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("E0501", "relation `edge` has 2 columns, the table has 3")
    assert "the columns given are: `a`, `b`, `when`" in diagnostic.notes


def test_a_missing_column_is_named_though_there_are_others():
    with refused("E0518", match="the header has no column `to` of relation `edge`") as raised:
        column_order(EDGE, ("from", "via", "when"), what="the header")
    assert raised.value.diagnostics[0].help.startswith("name a column `to`, or rename the attribute")


EXTRA = '{"note": "rain", "to": 2, "from": 1}\n'
WITH_EXTRA_COLUMN = {
    "table": pa.table({"to": [2], "note": ["rain"], "from": [1]}),
    "large table": pa.table({"to": [2] * 1000, "note": ["rain"] * 1000, "from": [1] * 1000}),
    "frame": pd.DataFrame({"to": [2], "note": ["rain"], "from": [1]}),
    "dictionaries": [json.loads(EXTRA)] * 2,
    "a.jsonl": EXTRA * 2,
    "a.json": f"[{EXTRA}, {EXTRA}]",
    "a.csv": 'to,"note, long",from\n2,"some, rain",1\n2,sun,1\n',
}


@pytest.mark.parametrize("bad_rows", ["fail", "skip"])
@pytest.mark.parametrize("kind", WITH_EXTRA_COLUMN)
def test_a_column_that_the_relation_does_not_have_is_left_out_with_one_warning(tmp_path, kind, bad_rows):
    given = WITH_EXTRA_COLUMN[kind]
    if isinstance(given, str):
        (tmp_path / kind).write_text(given)
        given = tmp_path / kind
    with pytest.warns(UserWarning, match="E0535") as told:
        db = elastalog.open(".decl edge(from: number, to: number)", {"edge": given}, bad_rows=bad_rows)
    assert set(db["edge"]) == {(1, 2)}
    (text,) = [str(one.message) for one in told]
    assert text.startswith("warning[E0535]: column `note")
    assert " left out: the relation has no such attribute" in text


CHANGES = [{"op": "-", "from": 1, "to": 2}, {"op": "+", "from": 3, "to": 4}]


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("edge.csv", ","), ("edge.csv", ";"), ("2-edge.csv", "|"), ("other.csv", "\t"), ("edge.tsv", "\t"),
        ("other.txt", ";"), ("edge.parquet", ""), ("other.parquet", ""),
    ],
)  # fmt: skip
def test_changes_are_no_facts_and_the_advice_applies_them(tmp_path, monkeypatch, name, mark):
    monkeypatch.chdir(tmp_path)
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(CHANGES), name)
    else:
        lines = [mark.join(CHANGES[0]), *(mark.join(map(str, row.values())) for row in CHANGES)]
        Path(name).write_text("\n".join(lines))
    with elastalog.open(".decl edge(from: number, to: number)", {"edge": [(1, 2)]}) as db:
        with refused("E0535", match="these are changes of `edge`, not facts") as told:
            db.apply({"edge": name})
        advice = told.value.diagnostics[0].help
        if found := re.match(r"call the file `(.+?)`", advice):
            Path(name).rename(found[1])
        db.apply(re.search(r'db.apply\("(.+?)"\)', advice)[1])
        assert set(db["edge"]) == {(3, 4)}


@pytest.mark.parametrize("kind", ["rows", "table", "frame", "edge.jsonl"])
def test_rows_of_changes_are_no_facts(tmp_path, kind):
    given = {"rows": CHANGES, "table": pa.Table.from_pylist(CHANGES), "frame": pd.DataFrame(CHANGES)}.get(kind)
    if given is None:
        given = tmp_path / kind
        given.write_text("".join(json.dumps(row) + "\n" for row in CHANGES))
    with elastalog.open(".decl edge(from: number, to: number)", {"edge": [(1, 2)]}) as db:
        with refused("E0535", match="not facts") as told:
            db.apply({"edge": given})
        assert re.fullmatch(r".*: `db.apply\(\{\"edge\": …\}, \{\"edge\": …\}\)`", told.value.diagnostics[0].help)
        db.apply({"edge": [(3, 4)]}, {"edge": [(1, 2)]})
        assert set(db["edge"]) == {(3, 4)}


def test_a_column_op_of_other_values_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="E0535.*column `op` left out"):
        db = elastalog.open(".decl edge(from: number, to: number)", {"edge": [{"op": "read", "from": 1, "to": 2}]})
    assert set(db["edge"]) == {(1, 2)}


def test_a_header_of_a_directive_may_have_more_columns_than_the_relation(tmp_path):
    (tmp_path / "links.csv").write_text("to,note,from\n2,rain,1\n")
    program = '.decl edge(from: number, to: number)\n.input edge(filename="links.csv", rfc4180=true, headers=true)'
    with pytest.warns(UserWarning, match="column `note` left out") as told:
        assert set(elastalog.open(program, tmp_path)["edge"]) == {(1, 2)}
    assert len(told) == 1


def test_parts_of_a_folder_of_parquet_files_say_what_is_left_out_alike(tmp_path):
    folder = tmp_path / "edge.parquet"
    folder.mkdir()
    for number in range(2):
        pq.write_table(pa.table({"to": [number], "note": ["rain"], "from": [1]}), folder / f"{number}.parquet")
    with pytest.warns(UserWarning, match="column `note` left out") as told:
        assert set(elastalog.open(".decl edge(from: number, to: number)", {"edge": folder})["edge"]) == {(1, 0), (1, 1)}
    assert len({str(one.message) for one in told}) == 1


def test_columns_apart_say_nothing_of_the_others():
    changes = Schema("edge", (Column("op", Base.SYMBOL), *EDGE.columns))
    assert column_order(changes, ("src", "dst", "op"), apart=("op",)) == [2, 0, 1]
    assert column_order(changes, ("to", "op", "from"), apart=("op",)) == [1, 2, 0]
    with pytest.raises(ElastalogError):
        column_order(changes, ("op", "to", "src"), apart=("op",))


def table_of(names):
    return pa.table([pa.array([2]), pa.array([1])], names=list(names))


TABLES = {
    "arrow": table_of,
    "pandas": lambda names: pd.DataFrame([(2, 1)], columns=list(names)),
    "pandas of mixed types": lambda names: pd.DataFrame([(2, 1)], columns=list(names), dtype=object),
    "polars": lambda names: pl.from_arrow(table_of(names)),
    "many rows": lambda names: pa.concat_tables([table_of(names)] * 100),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_go_by_name_or_not_at_all(kind):
    words = to_words(EDGE, TABLES[kind](("TO", "from")), Dictionary())
    assert set(map(tuple, words.tolist())) == {(1, 2)}
    words = to_words(EDGE, TABLES[kind](("a", "b")), Dictionary())
    assert set(map(tuple, words.tolist())) == {(2, 1)}
    with refused("E0518"):
        to_words(EDGE, TABLES[kind](("to", "src")), Dictionary())


def test_a_pandas_column_of_mixed_values_goes_by_name_too():
    named = Schema("r", (Column("x", Base.NUMBER), Column("y", Base.SYMBOL)))
    frame = pd.DataFrame({"y": ["a", "b"], "x": [1, "no"]})
    with pytest.raises(ElastalogError) as error:
        to_words(named, frame, Dictionary())
    assert error.value.diagnostics[0].message.endswith("`x` is declared as number, but given as str `'no'`")


def rows(path, **parameters):
    return [tuple(row.values()) for row in read_facts(EDGE, path, parameters).table.to_pylist()]


def test_files_go_by_name_or_not_at_all(tmp_path):
    def written(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    assert rows(written("a.csv", "To\tFrom\n2\t1\n"), headers="true") == [(1, 2)]
    assert rows(written("b.csv", "source\ttarget\n2\t1\n"), headers="true") == [(2, 1)]
    assert rows(written("c.csv", "a comment\n2\t1\n"), headers="true") == [(2, 1)]
    assert rows(written("d.jsonl", json.dumps({"TO": 2, "from": 1}))) == [(1, 2)]
    pq.write_table(table_of(("To", "from")), tmp_path / "e.parquet")
    assert rows(tmp_path / "e.parquet") == [(1, 2)]
    pq.write_table(table_of(("to", "src")), tmp_path / "f.parquet")
    for path in (written("g.csv", "to\tsrc\n2\t1\n"), tmp_path / "f.parquet"):
        with refused("E0518"):
            rows(path, headers="true")
    with refused(message="bad row for `edge`: the row has no value for `from`"):
        rows(written("h.jsonl", json.dumps({"to": 2, "src": 1})))


@pytest.mark.parametrize(("header", "row"), [("op,to,from", (1, 2)), ("source,OP,target".lower(), None)])
def test_tables_of_changes_go_by_name_or_by_position(tmp_path, header, row):
    path = tmp_path / "edge.csv"
    path.write_text(f"{header}\n+,2,1\n" if row else f"{header}\n2,+,1\n")
    diff = read_diff(path, {"edge": EDGE})
    assert [tuple(r.values()) for r in diff.inserted["edge"].to_pylist()] == [row or (2, 1)]


def test_a_table_of_changes_with_one_unknown_name_is_refused(tmp_path):
    path = tmp_path / "edge.csv"
    path.write_text("op,to,src\n+,2,1\n")
    with refused("E0518"):
        read_diff(path, {"edge": EDGE})


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("a",), "give a column for every attribute: 1 more needed"),
        (("a", "b", "c"), "name the columns as the attributes are declared: then others are left out"),
    ],
)
def test_too_few_columns_and_too_many(names, advice):
    with refused("E0501", help=advice):
        to_words(EDGE, pa.table([[1]] * len(names), names=names), Dictionary())
