from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.analysis.check import check
from elastalog.diagnostics.nearest import Effort, _distance, nearest
from elastalog.diagnostics.source import Source
from elastalog.syntax.parser import parse


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("egde", ["edge", "path"], "edge"),
        ("Edge", ["edge", "path"], "edge"),
        ("edges", ["edge", "path"], "edge"),
        ("reachable", ["reach", "reachables"], "reachables"),
        ("edge", ["edge"], None),
        ("foo", ["completely", "different"], None),
        ("foo", [], None),
        ("x", ["X", "y"], "X"),
        ("x", ["y", "xy"], None),
        ("ab", ["ba"], "ba"),
        ("abcdef", ["abcxyz"], None),
        ("strlne", ["strlen", "substr"], "strlen"),
        ("a" * 1_000_000, ["a" * 999_999], None),
    ],
)
def test_nearest(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(name, candidates) == expected


def test_ties_do_not_depend_on_the_order() -> None:
    assert nearest("cat", ["car", "bat"]) == nearest("cat", ["bat", "car"]) == "bat"


def _plain_distance(left: str, right: str) -> int:
    """By definition, without a band: insertions, deletions, replacements, swaps of neighbours."""
    table = {(i, 0): i for i in range(len(left) + 1)} | {(0, j): j for j in range(len(right) + 1)}
    for i, j in product(range(1, len(left) + 1), range(1, len(right) + 1)):
        ways = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (left[i - 1] != right[j - 1])]
        if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
            ways.append(table[i - 2, j - 2] + 1)
        table[i, j] = min(ways)
    return table[len(left), len(right)]


@given(st.text("abc", max_size=9), st.text("abc", max_size=9), st.integers(0, 9))
def test_the_distance_within_a_band_is_the_distance(left: str, right: str, most: int) -> None:
    assert min(_distance(left, right, most), most + 1) == min(_plain_distance(left, right), most + 1)


def test_the_work_of_all_suggestions_together_is_bounded() -> None:
    """Names as long as they may be, none of them declared, all of them near."""
    names = [f"{i:04}" + "x" * 58 for i in range(600)]
    program = "".join(f".decl {name}(x: number)\n" for name in (f"r{n}" for n in names))
    program += "".join(f"q{name}(1).\n" for name in names)
    began = time.process_time()
    found = check(parse(Source("p.dl", program))[0])[1]
    assert len([diagnostic for diagnostic in found if diagnostic.code == "E0204"]) == 600
    assert time.process_time() - began < 8


def test_without_effort_left_nothing_is_near() -> None:
    effort = Effort(100)
    assert nearest("edge", ["edgy"], effort) == "edgy"
    assert nearest("a" * 40, ["a" * 39], effort) is None
    assert nearest("edge", ["edgy"], effort) is None
