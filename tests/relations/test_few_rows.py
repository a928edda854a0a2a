"""Small tables and lists take a shorter way into words, with the same outcome as the long one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program
from elastalog.relations.schema import schemas_of
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

SCHEMA = schemas_of(Program.parse(".decl r(a: symbol, b: number, c: unsigned, d: symbol)").checked)["r"]
PLAIN = [("x", 1, 2, "y"), ("y", -(2**30), 2**30 - 1, ""), ("é\0", 0, 0, "x")]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table({name: list(values) for name, values in zip("abcd", zip(*rows, strict=True), strict=True)})


def _both_ways(rows: Any, monkeypatch: pytest.MonkeyPatch, many: bool) -> list[Any]:
    """What becomes of rows by the short way and by the long one, as words or as a diagnostic."""
    outcomes = []
    for few in (32, 0):
        monkeypatch.setattr(SETTINGS, "few_rows", few)
        dictionary = Dictionary()
        dictionary.symbols.extend([f"text {i}" for i in range(70_000 if many else 3)])
        try:
            words = to_words(SCHEMA, rows, dictionary)
        except ElastalogError as error:
            outcomes.append(str(error))
        else:
            outcomes.append(
                (words.tolist(), words.flags.c_contiguous, str(words.dtype), dictionary.symbols.strings_from(3))
            )
    return outcomes


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize(
    "rows",
    [
        PLAIN,
        [*PLAIN, ("x", 2**30, 2**62, "z")],
        [("x", True, 1, "y")],
        [("x", 1.5, 1, "y")],
        [("x", 1, -1, "y")],
        [("x", None, 1, "y")],
        [(None, 1, 1, "y")],
        [(7, 1, 1, "y")],
    ],
)
def test_both_ways_agree(
    rows: list[tuple[Any, ...]], as_table: bool, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = _both_ways(_table(rows) if as_table else rows, monkeypatch, many)
    assert short == long


def test_rows_that_are_no_rows_are_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (
        [("x", 1, 2)],
        [("x", 1, 2, "y", 3)],
        ["abcd"],
        [{"a": 1}],
        [("\ud800", 1, 2, "y")],
        [["x", 1, 2, "y"]],
    ):
        short, long = _both_ways(rows, monkeypatch, many=True)
        assert short == long


def test_columns_in_another_order_go_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = _both_ways(_table(PLAIN).select(["d", "c", "b", "a"]), monkeypatch, many=False)
    assert short == long
    assert short[0][0] == [3, 1, 2, 4]


def test_a_dictionary_decides_the_order_of_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["new", "newer"]))
    table = pa.table({"a": texts, "b": [1, 2], "c": [1, 2], "d": ["new", "new"]})
    short, long = _both_ways(table, monkeypatch, many=False)
    assert short == long
    assert [row[0] for row in short[0]] == [4, 3]


def test_bytes_that_are_not_utf8_are_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    table = pa.table({"a": bad, "b": [1], "c": [2], "d": ["y"]})
    short, long = _both_ways(table, monkeypatch, many=False)
    assert "UTF-8" in short
    assert short == long
