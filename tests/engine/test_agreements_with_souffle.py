"""Where it is easy to differ from Soufflé without meaning to."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.program import Program
from tests.analysis.checking import codes


def rows(text: str, **facts: Any) -> list[tuple[Any, ...]]:
    with elastalog.open(text, facts=facts) as db:
        return sorted(db["p"])


def test_to_number_reads_what_literals_spell() -> None:
    texts = ["-0x10", "0b101", "-0b11", "0x1f", "12", "-7", "0x", "b1", "1.5"]
    spelt = " ".join(f'p(to_number("{text}")).' for text in texts)
    assert rows(f".decl p(x: number)\n{spelt}") == [(-16,), (-7,), (-3,), (5,), (12,), (31,)]


def test_to_float_reads_what_files_of_facts_spell() -> None:
    texts = ["nan", "-NaN", "inf", "-Infinity", "1e3", ".5", "+2.", "e3", ".", "infinite", ""]
    spelt = " ".join(f'p("{text}", to_string(to_float("{text}"))).' for text in texts)
    assert dict(rows(f".decl p(s: symbol, t: symbol)\n{spelt}")) == {
        "nan": "nan", "-NaN": "nan", "inf": "inf", "-Infinity": "-inf", "1e3": "1000.0", ".5": "0.5", "+2.": "2.0"
    }  # fmt: skip
    same = '.decl p(x: float)\np(to_float("nan")). p(to_float("-nan")). p(0.0 * to_float("inf")).'
    assert len(rows(same)) == 1


@pytest.mark.parametrize(
    ("call", "values"), [("3, 9, 0", [3]), ("3, 1, 0", [3]), ("3, 1", [3, 2]), ("0, 5, 2", [0, 2, 4])]
)
def test_ranges(call: str, values: list[int]) -> None:
    assert rows(f".decl p(x: number)\np(range({call})).") == [(value,) for value in sorted(values)]


def test_quotes_delimiters_and_line_breaks_survive_a_round_trip(tmp_path: Path) -> None:
    text = ".decl p(s: symbol, t: symbol)\n.input p(rfc4180=true)\n.output p(rfc4180=true)\n"
    facts = [('say "hi"', "a,b"), ("line\nbreak", ""), ("plain", '"')]
    with elastalog.open(text, facts={"p": facts}) as db:
        from elastalog.pipeline.files.write import write_output

        write_output(db.program.checked.relations["p"], db["p"].to_arrow(), tmp_path)
    written = (tmp_path / "p.csv").read_text()
    assert '"say ""hi""","a,b"\n' in written
    assert '"plain",' in written  # as Soufflé, which quotes every text
    (tmp_path / "p.csv").rename(tmp_path / "p.facts")
    with elastalog.open(text, facts=tmp_path) as db:
        assert sorted(db["p"]) == sorted(facts)


def test_inline_relations_are_no_outputs_and_do_not_lead_to_themselves() -> None:
    text = ".decl e(x: number)\n.input e\n.decl a(x: number) inline\n"
    assert codes(text + "a(x) :- a(x).\n.decl b(x: number)\nb(x) :- a(x).") == ["E0226"]
    assert codes(text + ".output a\na(x) :- e(x).") == ["E0226"]


def test_aggregates_that_depend_on_each_other_are_refused() -> None:
    text = ".decl a, b(n: number)\na(n) :- n = count : { b(_) }.\nb(n) :- n = count : { a(_) }."
    assert set(codes(text)) == {"E0413"}


def test_plus_joins_symbols() -> None:
    assert rows('.decl p(s: symbol)\np("a" + "b" + "c").') == [("abc",)]


def test_a_pattern_may_be_a_variable_and_a_wrong_one_matches_nothing(caplog: pytest.LogCaptureFixture) -> None:
    text = '.decl e(s: symbol)\n.input e\n.decl p(s: symbol)\np(s) :- e(s), match(s, "aaa").'
    with caplog.at_level(logging.WARNING):
        assert rows(text, e=[("(",), ("a+",), ("b",)]) == [("a+",)]
    assert "E0613" in caplog.text
    constant = '.decl e(s: symbol)\n.input e\n.decl p(s: symbol)\np(s) :- e(s), match("a[", s).'
    assert [warning.code for warning in Program.parse(constant).warnings] == ["E0310"]
    caplog.clear()
    assert rows(constant, e=[("a[",)]) == []
    assert rows(constant.replace("match", "!match"), e=[("a[",)]) == [("a[",)]
    assert not caplog.text
