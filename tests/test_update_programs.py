"""Programs that are kept up to date: the `commands.txt` of a case in `tests/programs` is a script for the shell, and
`expected_output.txt`, written by hand, is what it prints, whatever the strategy."""

from __future__ import annotations

from pathlib import Path

import pytest

from elastalog.evaluation.strategies import STRATEGIES
from tests.commands import run

PROGRAMS = Path(__file__).parent / "programs"
CASES = sorted(path.parent.name for path in PROGRAMS.glob("*/commands.txt"))

TREATMENTS = {
    "elastic": [],
    "elastic with the least budget": ["--budget", "0"],
    "updates only": ["--budget", "none"],
    "global levels": ["--levels", "global", "--budget", "none"],
    # Counting cannot maintain recursion; the other baselines do whatever elastic does.
    **{name: ["--strategy", name] for name in STRATEGIES if name not in ("elastic", "counting")},
}


pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("name", CASES)
def test_every_script_prints_what_is_expected(name: str, treatment: str) -> None:
    folder = PROGRAMS / name
    facts = ["-F", folder / "facts"] if (folder / "facts").is_dir() else []
    script = (folder / "commands.txt").read_text(encoding="utf-8")
    result = run("shell", folder / "program.dl", *facts, *TREATMENTS[treatment], text=script)
    warned = folder / "expected_warnings.txt"
    assert result.stderr == (warned.read_text(encoding="utf-8") if warned.exists() else "")
    assert result.stdout == (folder / "expected_output.txt").read_text(encoding="utf-8")
    assert result.exit_code == 0
