"""Plain outputs are written straight from words: the same bytes as through a table."""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.pipeline.files import write
from elastalog.pipeline.files.paths import replacing
from elastalog.pipeline.files.write import write_lines, write_output
from elastalog.relations import blocks_of_lines
from elastalog.relations.facts import Relation
from elastalog.relations.limits import Words
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS
from tests.pipeline.schemas import EDGE, FLAG, PAIR, relation
from tests.refusals import refused

NUMBERS = [0, 1, -1, 9, 10, -10, 99, 100, 2**30 - 1, -(2**30), 2**30, -(2**30) - 1, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "seven 7", "eight  8", "nine    9", "ü", "x" * 30, 'say "b"', "x" * 5000]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "LEAST_ROWS", 1)
    monkeypatch.setattr(blocks_of_lines, "_BYTES_AT_ONCE", 64)
    monkeypatch.setattr(blocks_of_lines, "_STRANGE_ROWS", 3)


def facts(schema: Schema, rows: list[tuple]) -> Relation:
    dictionary = Dictionary()
    return Relation.of(schema, dictionary, to_words(schema, rows, dictionary))


@pytest.mark.parametrize("parameters", [{}, {"delimiter": ";"}, {"filename": "other.tsv"}])
def test_the_same_bytes(tmp_path: Path, parameters: dict[str, str]) -> None:
    choice = random.Random(3)
    for schema, rows in (
        (EDGE, [(choice.choice(NUMBERS), choice.choice(TEXTS)) for _ in range(300)]),
        (PAIR, [(number, -number) for number in NUMBERS[:-1]]),
    ):
        declared = relation(schema, parameters, kind="output")
        given = facts(schema, rows)
        path = write_lines(declared, given, tmp_path)
        written = path.read_bytes()
        delimiter = parameters.get("delimiter", "\t")
        assert written.decode() == "".join(f"{x}{delimiter}{y}\n" for x, y in rows)
        assert write_output(declared, given.to_arrow(), tmp_path) == [path]
        assert path.read_bytes() == written


@pytest.mark.parametrize("text", ["a\tb", "a\n", "\r", "long enough for a word\t", "\tlong enough for a word"])
def test_texts_that_lines_cannot_hold_are_refused(tmp_path: Path, text: str) -> None:
    declared = relation(EDGE, {}, kind="output")
    with refused("E0516"):
        write_lines(declared, facts(EDGE, [(1, "fine"), (2, text)]), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "parameters",
    [{"IO": "stdout"}, {"rfc4180": "true"}, {"headers": "true"}, {"compress": "true"}, {"delimiter": "1"},
     {"delimiter": "::"}, {"filename": "edge.parquet"}],
)  # fmt: skip
def test_other_formats_are_left_to_others(tmp_path: Path, parameters: dict[str, str]) -> None:
    assert write_lines(relation(EDGE, parameters, kind="output"), facts(EDGE, [(1, "a")]), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_other_relations_are_left_to_others(tmp_path: Path) -> None:
    assert write_lines(relation(EDGE, {}, {}, kind="output"), facts(EDGE, [(1, "a")]), tmp_path) is None
    assert write_lines(relation(EDGE, {}, kind="printsize"), facts(EDGE, [(1, "a")]), tmp_path) is None
    assert write_lines(relation(FLAG, {}, kind="output"), facts(FLAG, [()]), tmp_path) is None
    assert not list(tmp_path.iterdir())


# --- threads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "write_in_threads_from", 10)
    monkeypatch.setattr(write, "ROWS_OF_A_PART", 7)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_make_the_same_bytes_together(tmp_path: Path, threads: int) -> None:
    choice = random.Random(5)
    narrow = [number for number in NUMBERS if -(2**30) <= number < 2**30]
    rows = [(choice.choice(narrow), choice.choice(TEXTS)) for _ in range(300)]
    path = write_lines(relation(EDGE, {}, kind="output"), facts(EDGE, rows), tmp_path, threads=threads)
    assert path.read_text() == "".join(f"{x}\t{y}\n" for x, y in rows)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.usefixtures("small_parts")
def test_what_needs_a_closer_look_is_looked_at_in_order(tmp_path: Path) -> None:
    """Numbers that are wide, and symbols that break their line, of which the doubt is told as with one thread."""
    rows = [(n if n % 40 else 2**40 + n, "a\tb" if n == 77 else f"text {n}") for n in range(100)]
    written, told = [], []
    for threads in (1, 3):
        doubts: list[Diagnostic] = []
        given = facts(EDGE, rows)
        path = write_lines(relation(EDGE, {}, kind="output"), given, tmp_path, doubts.append, threads)
        written.append(path.read_text())
        told.append([(doubt.code, doubt.message) for doubt in doubts])
    assert written[0] == written[1] == "".join(f"{x}\t{y}\n" for x, y in rows)
    assert told[0] == told[1] != []
    with refused("E0516"):
        write_lines(relation(EDGE, {"filename": "other.csv"}, kind="output"), facts(EDGE, rows), tmp_path, threads=3)
    assert [found.name for found in tmp_path.iterdir()] == ["edge.csv"]


@pytest.mark.usefixtures("small_parts")
def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full(path: Path) -> Iterator[Any]:
        def some(data: bytes | memoryview) -> None:
            if out.tell() > 500:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            out.write(data)

        with replacing(path) as out:
            yield SimpleNamespace(write=some)

    monkeypatch.setattr(write, "replacing", full)
    given = facts(EDGE, [(n, f"text {n}") for n in range(100)])
    with refused("E0517"):
        write_lines(relation(EDGE, {}, kind="output"), given, tmp_path, threads=2)
    assert not list(tmp_path.iterdir())
    few = facts(EDGE, [(n, f"text {n}") for n in range(30)])
    path = write_lines(relation(EDGE, {}, kind="output"), few, tmp_path, threads=2)
    assert path.read_text() == "".join(f"{n}\ttext {n}\n" for n in range(30))


@pytest.mark.usefixtures("small_parts")
def test_ctrl_c_while_threads_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = threading.get_ident()
    told: list[int] = []

    def slow(words: Words, *rest: Any) -> Iterator[memoryview | Words]:
        if threading.get_ident() != caller and not told:
            told.append(len(words))
            signal.pthread_kill(caller, signal.SIGINT)
        time.sleep(0.01)
        return lines_really(words, *rest)

    lines_really = blocks_of_lines.lines_of
    monkeypatch.setattr(blocks_of_lines, "lines_of", slow)
    given = facts(EDGE, [(n, f"text {n}") for n in range(500)])
    with pytest.raises(KeyboardInterrupt):
        write_lines(relation(EDGE, {}, kind="output"), given, tmp_path, threads=2)
    assert not list(tmp_path.iterdir())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("elastalog writing")]
