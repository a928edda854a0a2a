"""Programs with faults: `tests/programs/errors/<case>/program.dl` gives exactly the diagnostics of `expected.txt`.

`REWRITE=1 pytest tests/test_error_programs.py` refreshes the expectations; read the difference by eye.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError, render_text
from elastalog.program import Program, read_program_text

CASES = sorted(path for path in (Path(__file__).parent / "programs" / "errors").iterdir() if path.is_dir())


def diagnostics_of(case: Path) -> str:
    try:
        diagnostics = Program.parse(read_program_text(str(case / "program.dl")), "program.dl").warnings
    except ElastalogError as error:
        diagnostics = error.diagnostics
    return "\n\n".join(render_text(diagnostic) for diagnostic in diagnostics) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_diagnostics_are_exactly_those_expected(case: Path) -> None:
    expected = case / "expected.txt"
    found = diagnostics_of(case)
    if os.environ.get("REWRITE"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")
    assert found.strip(), "a case of this folder has at least one diagnostic"
