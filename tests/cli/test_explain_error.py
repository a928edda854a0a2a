from __future__ import annotations

import pytest

from elastalog.diagnostics.catalogue import CATALOGUE
from tests.commands import run


@pytest.mark.parametrize("spelling", ["E0412", "e0412", "412", "E412"])
def test_a_code_is_explained_with_a_wrong_and_a_right_program(spelling: str) -> None:
    result = run("explain-error", spelling)
    assert result.exit_code == 0
    assert result.stdout.startswith("E0412: negation in a cycle\n")
    assert "Wrong:\n\n    .decl node" in result.stdout
    assert "Right:\n\n    .decl node" in result.stdout


def test_an_unknown_code_offers_the_nearest() -> None:
    result = run("explain-error", "E0419")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("unknown error code `E0419`: did you mean E041")


def test_without_a_code_all_are_listed() -> None:
    result = run("explain-error")
    assert result.exit_code == 0
    assert [line[:5] for line in result.stdout.splitlines()] == list(CATALOGUE)
