from __future__ import annotations

import pytest

from elastalog.diagnostics.nearest import nearest


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
        ("x", ["y", "z"], "y"),
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
