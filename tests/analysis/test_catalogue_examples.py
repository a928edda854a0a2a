"""The catalogue teaches with programs: the wrong one has the error, the right one has no finding at all."""

from __future__ import annotations

import pytest

from elastalog.analysis.growth import warnings_of_growth
from elastalog.diagnostics.catalogue import Entry, read_group
from elastalog.program import Program
from tests.analysis.checking import accepted, codes

ANALYSIS = (*read_group("names"), *read_group("types"))
PROGRAMS = [entry for entry in ANALYSIS if not entry.code.startswith(("E023", "E0325", "E0414"))]


@pytest.mark.parametrize("entry", PROGRAMS, ids=lambda entry: entry.code)
def test_examples(entry: Entry) -> None:
    assert set(codes(entry.example)) == {entry.code}
    assert codes(entry.fix) == []


def test_examples_of_divisions_by_zero() -> None:
    (entry,) = [entry for entry in ANALYSIS if entry.code == "E0325"]
    assert [found.code for found in Program.parse(entry.example).warnings] == ["E0325"]
    assert not Program.parse(entry.fix).warnings


def test_examples_of_growth() -> None:
    (entry,) = [entry for entry in ANALYSIS if entry.code == "E0414"]
    assert [found.code for found in warnings_of_growth(accepted(entry.example))] == ["E0414"]
    assert warnings_of_growth(accepted(entry.fix)) == []
