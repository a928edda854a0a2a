"""The update scripts of `tests/programs`, whose expected output was written by hand, with strata in tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.spark.without_spark import tasks_in_this_process
from tests.test_update_programs import CASES, PROGRAMS

ON_SPARK = ["updates_recursion", "updates_negation", "updates_several_strata", "updates_mutual_recursion"]
IN_THE_DRIVER = ["updates_records"]
TREATMENTS = {
    "elastic": [],
    "updates only": ["--budget", "none"],
    "global levels": ["--levels", "global", "--budget", "none"],
    "dredc": ["--strategy", "dredc"],
    "bf": ["--strategy", "bf"],
    "bfc": ["--strategy", "bfc"],
    "recompute": ["--strategy", "recompute"],
}


def run_script(name: str, *options: str) -> None:
    folder = PROGRAMS / name
    facts = ["-F", str(folder / "facts")] if (folder / "facts").is_dir() else []
    script = (folder / "commands.txt").read_text(encoding="utf-8")
    arguments = ["shell", str(folder / "program.dl"), *facts, *options]
    result = run(*arguments, text=script)
    warned = folder / "expected_warnings.txt"
    # Of what this process does not have nothing is looked up to warn of it.
    assert result.stderr in ("", warned.read_text(encoding="utf-8") if warned.exists() else "")
    assert result.stdout == (folder / "expected_output.txt").read_text(encoding="utf-8")
    assert result.exit_code == 0


@pytest.mark.parametrize("name", ON_SPARK)
def test_scripts_on_spark(spark: Any, name: str) -> None:
    run_script(name, "--engine", "spark")


def _mark(number: int, treatment: str) -> tuple[pytest.MarkDecorator, ...]:
    """Each treatment but the first has a part of the scripts in `make test`, another one each."""
    place = list(TREATMENTS).index(treatment)
    return () if not place or number % len(TREATMENTS) == place else (pytest.mark.long,)


@pytest.mark.parametrize(
    ("name", "treatment"),
    [
        pytest.param(name, treatment, marks=_mark(number, treatment))
        for number, name in enumerate(CASES)
        for treatment in TREATMENTS
    ],
)
def test_scripts_with_tasks_in_this_process(name: str, treatment: str, tmp_path: Path) -> None:
    with tasks_in_this_process(tmp_path, shares=2) as session:
        run_script(name, "--engine", "spark", *TREATMENTS[treatment])
        # Under these, strata that do not decompose are followed in the driver; so are all that build records.
        assert session.ran or treatment in ("global levels", "dredc") or name in IN_THE_DRIVER
