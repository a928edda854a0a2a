"""Plain outputs are written straight from words: the same bytes as through a table."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from elastalog import ElastalogError
from elastalog.pipeline.files import write_lines as module
from elastalog.pipeline.files.write import write_output
from elastalog.pipeline.files.write_lines import write_lines
from elastalog.relations import blocks_of_lines
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_words
from elastalog.relations.words import Dictionary
from tests.pipeline.schemas import EDGE, FLAG, PAIR, relation

NUMBERS = [0, 1, -1, 9, 10, -10, 99, 100, 2**30 - 1, -(2**30), 2**30, -(2**30) - 1, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "seven 7", "eight  8", "nine    9", "ü", "x" * 30, 'say "b"', "x" * 5000]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
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
        assert path is not None
        written = path.read_bytes()
        delimiter = parameters.get("delimiter", "\t")
        assert written.decode() == "".join(f"{x}{delimiter}{y}\n" for x, y in rows)
        assert write_output(declared, given.to_arrow(), tmp_path) == [path]
        assert path.read_bytes() == written


@pytest.mark.parametrize("text", ["a\tb", "a\n", "\r", "long enough for a word\t", "\tlong enough for a word"])
def test_texts_that_lines_cannot_hold_are_refused(tmp_path: Path, text: str) -> None:
    declared = relation(EDGE, {}, kind="output")
    with pytest.raises(ElastalogError) as error:
        write_lines(declared, facts(EDGE, [(1, "fine"), (2, text)]), tmp_path)
    assert [found.code for found in error.value.diagnostics] == ["E0516"]
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
