"""Verdicts follow from records by the rules of the claims."""

from __future__ import annotations

import pytest

from benchmarks.papers import __main__ as every_item
from benchmarks.papers.claims import Claim, Rule, Verdict, exactly, judge
from benchmarks.papers.items import ITEMS, PAPERS, reasons
from benchmarks.papers.printed import TABLES
from benchmarks.papers.record import Record
from benchmarks.papers.stated import CLAIMS
from benchmarks.papers.tables import Figures

assert every_item

LISTED = """
elastic.table1 elastic.table2 elastic.table3 elastic.table4 elastic.figure5 elastic.figure6 elastic.threshold
dredc.table1 dredc.table2 dredc.unbounded dredc.example1 dredc.example2 marking.table1 marking.table2 marking.table3
provenance.table4_2 provenance.table4_3 provenance.table4_4 provenance.table4_5 provenance.figure4_16
provenance.metrics debugging.table6_1 debugging.algorithm11
"""


def verdict(values: dict[str, float], *rules: Rule) -> Verdict:
    record = Record("p.t", "quick", {}, "", 0.0, 0.0, Figures(values=values))
    return judge(Claim("p", "", rules), lambda name: record if name == "p.t" else None).verdict


@pytest.mark.parametrize(
    ("value", "rule", "expected"),
    [
        (480, exactly("p.t:x", 480), Verdict.HOLDS),
        (481, exactly("p.t:x", 480), Verdict.FAILS),
        (23, Rule("p.t:x", 1, printed=160), Verdict.OTHER),
        (0.5, Rule("p.t:x", 1, printed=160), Verdict.FAILS),
        (160, Rule("p.t:x", 1, printed=160), Verdict.HOLDS),
        (1.4, Rule("p.t:x", 0, 1.5), Verdict.HOLDS),
        (1.6, Rule("p.t:x", 0, 1.5), Verdict.FAILS),
    ],
)
def test_a_rule_decides_by_its_bounds(value: float, rule: Rule, expected: Verdict) -> None:
    assert verdict({"x": value}, rule) is expected


def test_the_worst_rule_decides() -> None:
    good, other, bad = exactly("p.t:x", 1), Rule("p.t:x", 0, printed=2), Rule("p.t:x", 5)
    assert verdict({"x": 1}, good, other) is Verdict.OTHER
    assert verdict({"x": 1}, good, other, bad) is Verdict.FAILS


def test_what_has_no_value_is_open_and_what_has_no_rule_is_untestable() -> None:
    assert verdict({}, exactly("p.t:x", 1)) is Verdict.OPEN
    assert verdict({"x": 1}, exactly("p.other:x", 1)) is Verdict.OPEN
    assert verdict({"x": 1}) is Verdict.UNTESTABLE


def test_every_table_and_figure_that_was_asked_for_is_there_with_its_reasons() -> None:
    assert set(LISTED.split()) <= set(ITEMS)
    assert set(reasons()) == set(ITEMS)
    assert set(TABLES) <= set(ITEMS)


def test_rows_of_printed_tables_are_as_wide_as_their_heads() -> None:
    tables = [table for some in TABLES.values() for table in some]
    assert [t.title for t in tables if any(len(row) != len(t.head) for row in t.rows)] == []


def test_claims_speak_of_items_that_are_measured_and_say_why_if_they_cannot() -> None:
    names = {rule.value.partition(":")[0] for claim in CLAIMS for rule in claim.rules}
    assert {name for name in names if name not in ITEMS or ITEMS[name].measure is None} == set()
    assert {claim.paper for claim in CLAIMS} == set(PAPERS)
    assert [claim.text for claim in CLAIMS if not claim.rules and not claim.note] == []
