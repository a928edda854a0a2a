"""Programs that are kept up to date: the `commands.txt` of a case in `tests/programs` is a script for the shell, and
`expected_output.txt`, written by hand, is what it prints, whatever the strategy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from elastalog.cli.main import cli

PROGRAMS = Path(__file__).parent / "programs"
CASES = sorted(path.parent.name for path in PROGRAMS.glob("*/commands.txt"))

TREATMENTS = {
    "recompute": ["--strategy", "recompute"],
    "elastic": [],
    "elastic with the least budget": ["--budget", "0"],
    "updates only": ["--budget", "none"],
    "global levels": ["--levels", "global", "--budget", "none"],
}


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("name", CASES)
def test_every_script_prints_what_is_expected(name: str, treatment: str) -> None:
    folder = PROGRAMS / name
    facts = ["-F", str(folder / "facts")] if (folder / "facts").is_dir() else []
    script = (folder / "commands.txt").read_text(encoding="utf-8")
    result = CliRunner().invoke(
        cli, ["shell", str(folder / "program.dl"), *facts, *TREATMENTS[treatment]], input=script, catch_exceptions=False
    )
    assert result.stderr == ""
    assert result.stdout == (folder / "expected_output.txt").read_text(encoding="utf-8")
    assert result.exit_code == 0
