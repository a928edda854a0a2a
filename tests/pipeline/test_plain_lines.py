"""Files of plain lines are read straight into words: the same facts, ids and faults as by the other way, whatever the
blocks and the threads."""

from __future__ import annotations

import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog import ElastalogError
from elastalog.analysis.program import Base
from elastalog.pipeline.files import loading, policy
from elastalog.pipeline.files.format import Format
from elastalog.pipeline.files.loading import Source, plain_file
from elastalog.pipeline.files.policy import BadRows
from elastalog.pipeline.files.text import _read_exactly
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS
from tests.pipeline.reading import read_facts
from tests.pipeline.schemas import EDGE as MIXED
from tests.pipeline.schemas import NAME, PAIR

EDGE = Schema("edge", (Column("x", Base.SYMBOL), Column("y", Base.SYMBOL)))

PROGRAM = """
.decl call(from: symbol, line: number, to: symbol)
.input call
.decl loaded(name: symbol)
.input loaded
.decl reaches(from: symbol, to: symbol)
.output reaches
reaches(x, y) :- call(x, _, y).
reaches(x, z) :- reaches(x, y), call(y, _, z).
"""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is read so, in blocks of a few lines."""
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1)
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", 16)
    monkeypatch.setattr(loading, "_MORE", 3)


def read(schema: Schema, path: Path, **parameters: str) -> tuple[list[tuple], list[tuple[int, str]], list[str]]:
    """The rows, the lines and codes of bad ones, and the symbols in the order of their ids."""
    file = plain_file(schema, path, Format.of(parameters, path.name))
    source = Source(schema.name, file, partial(read_facts, schema, path))
    dictionary = Dictionary()
    blocks = (block() for block in file.blocks())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "MOST_REPORTED", 1000)
        loaded = loading._assembled(
            source, blocks, BadRows("skip"), dictionary, lambda name, table: to_words(schema, table, dictionary)
        )
    rows = [tuple(row.values()) for part in loaded.parts for row in to_table(schema, part, dictionary).to_pylist()]
    assert loaded.report.loaded == len(rows)
    return rows, [(row.line, row.fault.code) for row in loaded.report.first_bad], dictionary.symbols.strings_from(0)


def exactly(schema: Schema, content: bytes) -> tuple[list[tuple], list[tuple[int, str]]]:
    table, bad = _read_exactly(schema, content, "r.facts", Format(), 1)
    return [tuple(row.values()) for row in table.to_pylist()], [(row.line, row.fault.code) for row in bad]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\tb\n", [("a", "b")]),
        (b"a\tb", [("a", "b")]),
        (b"\t\n\t", [("", ""), ("", "")]),
        (b"a\tb\r\nc\td\r\n", [("a", "b"), ("c", "d")]),
        (b"a\rb\tc\rd\r\r\n", [("a\rb", "c\rd\r")]),
        (b"\xef\xbb\xbfa\tb\n", [("a", "b")]),
        ("sieben\tzwölf\n".encode(), [("sieben", "zwölf")]),
        (b"eight888\tnine99999\neight888\tsixteen\n", [("eight888", "nine99999"), ("eight888", "sixteen")]),
        (b"a" * 100 + b"\t" + b"b" * 50 + b"\nc\td\n", [("a" * 100, "b" * 50), ("c", "d")]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("small_blocks")
def test_symbols(tmp_path: Path, content: bytes, expected: list[tuple[str, str]]) -> None:
    path = tmp_path / "r.facts"
    path.write_bytes(content)
    rows, bad, symbols = read(EDGE, path)
    assert rows == expected
    assert not bad
    assert symbols == list(dict.fromkeys(text for row in expected for text in row))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1\t-2\n-0\t007\n", [(1, -2), (0, 7)]),
        (b"1073741823\t-1073741824\n1073741824\t-1073741825\n", [(2**30 - 1, -(2**30)), (2**30, -(2**30) - 1)]),
        (b"9223372036854775807\t-9223372036854775808\n", [(2**63 - 1, -(2**63))]),
        (b" 1\t+2\n0x10\t0b11\n", [(1, 2), (16, 3)]),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_numbers(tmp_path: Path, content: bytes, expected: list[tuple[int, int]]) -> None:
    path = tmp_path / "r.facts"
    path.write_bytes(content)
    assert read(PAIR, path) == (expected, [], [])


@pytest.mark.usefixtures("small_blocks")
def test_a_line_of_one_symbol_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "r.facts"
    path.write_bytes(b"a\n\n\nb\n" * 7)
    rows, bad, symbols = read(NAME, path)
    assert rows == [("a",), ("",), ("",), ("b",)] * 7
    assert not bad
    assert symbols == ["a", "", "b"]


@pytest.mark.usefixtures("small_blocks")
@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "", "longer than eight", "ü", "\r", "12", "-3", "x\0y"]), max_size=3),
        max_size=40,
    ),
    st.booleans(),
    st.integers(1, 40),
)
def test_bad_and_good_lines_are_those_of_the_exact_way(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], is_ended: bool, block: int
) -> None:
    content = "\n".join("\t".join(line) for line in lines).encode() + (b"\n" if is_ended else b"")
    if not content:
        return
    path = tmp_path_factory.mktemp("facts") / "r.facts"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SETTINGS, "bytes_of_a_block", block)
        for schema in (EDGE, MIXED, PAIR, NAME):
            rows, bad, symbols = read(schema, path)
            assert (rows, bad) == exactly(schema, content)
            assert len(set(symbols)) == len(symbols)


@pytest.mark.usefixtures("small_blocks")
def test_bytes_that_are_no_text_are_located(tmp_path: Path) -> None:
    path = tmp_path / "r.facts"
    path.write_bytes(b"a\tb\n" * 20 + b"a\t\xff\n" + b"c\td\n")
    rows, bad, symbols = read(EDGE, path)
    assert rows == [("a", "b")] * 20 + [("c", "d")]
    assert bad == [(21, "E0505")]
    assert symbols == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("small_blocks")
def test_an_empty_file_has_no_facts(tmp_path: Path) -> None:
    (tmp_path / "call.facts").write_text("a\t1\tb\n")
    (tmp_path / "loaded.facts").write_text("")
    with elastalog.open(PROGRAM, facts=tmp_path, engine="local") as db:
        assert set(db["loaded"]) == set()
        assert set(db["reaches"]) == {("a", "b")}


def test_more_symbols_than_a_block_is_made_for(tmp_path: Path) -> None:
    content = "".join(f"{number:x}\n" for number in range(60_000))
    (tmp_path / "r.facts").write_text(content)
    rows, _, symbols = read(NAME, tmp_path / "r.facts")
    assert symbols == content.split()
    assert [row[0] for row in rows] == symbols


@pytest.mark.parametrize(
    "parameters",
    [{"headers": "true"}, {"rfc4180": "true"}, {"delimiter": "::"}, {"delimiter": "é"}, {"compress": "true"}],
)
@pytest.mark.usefixtures("small_blocks")
def test_other_formats_are_not_plain(tmp_path: Path, parameters: dict[str, str]) -> None:
    (tmp_path / "r.facts").write_bytes(b"a\tb\n")
    assert plain_file(EDGE, tmp_path / "r.facts", Format()) is not None
    assert plain_file(EDGE, tmp_path / "r.facts", Format.of(parameters, "r.facts")) is None


# --- threads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """Two files of many blocks, some of which hold numbers that need a closer look."""
    choice = random.Random(7)
    calls = [(choice.randrange(360), choice.randrange(80), choice.randrange(360)) for _ in range(600)]
    lines = [f"method {a} of a class\t{b if b else 1 << 40}\tmethod {c} of a class\n" for a, b, c in calls]
    (tmp_path / "call.facts").write_text("".join(lines))
    (tmp_path / "loaded.facts").write_text("".join(f"class {n}\nmethod {n} of a class\n" for n in range(500)))
    return tmp_path


@pytest.mark.parametrize("is_by_path", [False, True])
def test_ids_facts_and_levels_do_not_depend_on_threads(
    facts: Path, is_by_path: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "read_in_threads_from", 1)
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", 1 << 11)
    given = {name: facts / f"{name}.facts" for name in ("call", "loaded")} if is_by_path else facts
    known = []
    for jobs in (1, 2, 4):
        with elastalog.open(PROGRAM, facts=given, jobs=jobs, engine="local") as db:
            symbols = db._materialisation.dictionary.symbols.strings_from(0)
            backend = db._backend
            levels = {name: sorted(zip(db[name], backend.facts(name).level.tolist(), strict=True)) for name in db}
            known.append((symbols, levels))
    assert known[0] == known[1] == known[2]
    assert len(known[0][1]["call"]) == len(set((facts / "call.facts").read_text().splitlines()))


@pytest.mark.usefixtures("small_blocks")
def test_the_first_bad_row_is_named_with_every_number_of_threads(facts: Path) -> None:
    with (facts / "call.facts").open("a") as file:
        file.write("method\tno number\tmethod\n" * 3)
    messages = []
    for jobs in (1, 2, 4):
        with pytest.raises(ElastalogError) as error:
            elastalog.open(PROGRAM, facts=facts, jobs=jobs, engine="local")
        messages.append(str(error.value))
    assert messages[0] == messages[1] == messages[2]
    assert "call.facts:601" in messages[0]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("elastalog reading")]


@pytest.mark.parametrize("row", ["method\tno number\tmethod\n", "method\t1\n", "a\t1\tb\tc\n"])
def test_a_bad_row_of_a_file_that_is_given_by_its_path(
    facts: Path, row: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told as by who reads whole files, with what the file is likely to need; so is how files are written."""
    caplog.set_level("INFO", "elastalog.facts")
    monkeypatch.setattr(SETTINGS, "bytes_of_a_block", 1 << 11)
    given = {name: facts / f"{name}.facts" for name in ("loaded", "call")}
    told: list[Any] = []
    for read_in_threads_from in (1, 1 << 30):
        monkeypatch.setattr(SETTINGS, "read_in_threads_from", read_in_threads_from)
        caplog.clear()
        with elastalog.open(PROGRAM, facts=given, jobs=3, engine="local") as db:
            told.append((sorted(caplog.messages), len(db["reaches"])))
    assert told[0] == told[1]
    with (facts / "call.facts").open("a") as file:
        file.write(row)
    for read_in_threads_from in (1, 1 << 30):
        monkeypatch.setattr(SETTINGS, "read_in_threads_from", read_in_threads_from)
        with pytest.raises(ElastalogError) as error:
            elastalog.open(PROGRAM, facts=given, jobs=3, engine="local")
        told.append(str(error.value))
    assert told[2] == told[3]
