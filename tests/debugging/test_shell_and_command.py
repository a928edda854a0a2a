"""The shell's commands and `elastalog debug`: what they print, and how they end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from tests.commands import run
from tests.tables import table

PROGRAM = """\
.decl edge, path(x: number, y: number)
edge(1, 2).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
UPDATE = "+edge(2, 3).\n+edge(5, 6).\n-edge(1, 2).\n"


pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "u.diff").write_text(UPDATE)
    path = tmp_path / "p.dl"
    path.write_text(PROGRAM)
    return path


def shell(program: Path, *lines: str) -> Result:
    return run("shell", program, text="insert edge(2, 3), edge(5, 6), delete edge(1, 2); commit\n" + "\n".join(lines))


def lines_after_commit(result: Result) -> list[str]:
    lines = result.stdout.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith("epoch 2")) + 1 :]


# --- the shell


def test_suggest_and_localise(program: Path) -> None:
    result = shell(program, "suggest +path(5, 6) -path(1, 2)", "localise +path(5, 6), -path(1, 2)")
    assert result.exit_code == 0, result.stderr
    assert lines_after_commit(result) == [
        "wanted: path(5, 6) absent, path(1, 2) present",
        "undo 2 of 3 elements of epoch 2 (verified, minimum):",
        "  insert edge(1, 2)",
        "  delete edge(5, 6)",
        "side effects: 1 fact appears: +path(1, 3)",
        "`apply` does it; `reject edge(1, 2)` looks for another repair",
        "wanted: path(5, 6) absent, path(1, 2) present",
        "the faults come from 2 of 3 elements of epoch 2 (verified, minimum):",
        "  -edge(1, 2)",
        "  +edge(5, 6)",
    ]


def test_proofs_connect_the_answer_with_the_faults(program: Path) -> None:
    result = shell(program, "suggest -path(1, 2)", "proofs")
    assert lines_after_commit(result)[5:8] == ["edge(1, 2)", "----------(R1)", "path(1, 2)"]


def test_apply_undoes_what_was_suggested(program: Path) -> None:
    result = shell(program, "suggest +path(2, 3)", "apply", "query edge(2, X)", "undo", "query edge(2, X)")
    assert lines_after_commit(result)[5:] == [
        "-edge(2, 3)",
        "-path(2, 3)",
        "epoch 3: 0 inserted, 2 deleted",
        "no answers",
        "+edge(2, 3)",
        "+path(2, 3)",
        "epoch 4: 2 inserted, 0 deleted",
        "X = 3",
    ]


def test_all_side_effects_are_shown_by_what_the_answer_says_can_be_typed(program: Path) -> None:
    more = "insert " + ", ".join(f"edge({i}, {i + 1})" for i in range(10, 16))
    asked = [more, "commit", "suggest facts +path(10, 16)"]
    found = re.search("to see them all: `(.*)`, then `(preview all)`", shell(program, *asked).stdout)
    assert found is not None
    assert "-path(10, 16)" in shell(program, *asked, *found.groups()).stdout.split(found[0])[1]


def test_reject_suggests_again_or_says_that_nothing_is_left(program: Path) -> None:
    result = shell(program, "suggest +path(2, 3)", "reject +edge(2, 3)")
    assert result.exit_code == 1
    assert "error[E1006]" in result.stderr
    result = shell(program, "commit", "reject +edge(2, 3)")
    assert "nothing was suggested" in result.stderr


def test_faults_may_be_named_in_the_shell_as_on_the_command_line(program: Path) -> None:
    result = shell(program, "debug --unwanted path(2, 3) --missing path(2, 4)", "suggest +path(2, 3) -path(2, 4)")
    told = lines_after_commit(result)
    assert told[0] == "wanted: path(2, 3) absent, path(2, 4) present"
    assert told[: len(told) // 2] == told[len(told) // 2 :]


def test_blame(program: Path) -> None:
    result = shell(program, "blame path(1, 2)", "blame path(2, 3)")
    assert lines_after_commit(result) == [
        "path(1, 2) disappeared in epoch 2, because of",
        "  -edge(1, 2)",
        "path(2, 3) appeared in epoch 2, because of",
        "  +edge(2, 3)",
    ]


@pytest.mark.parametrize(("line", "code"), table(__file__, "wrong use is an error with its place"))
def test_wrong_use_is_an_error_with_its_place(program: Path, line: str, code: str) -> None:
    result = shell(program, line)
    assert result.exit_code == 1
    assert f"error[{code}]" in result.stderr or code == "E0101"
    assert "<stdin>:2:" in result.stderr


# --- elastalog debug


def test_debug_prints_the_suggestion(program: Path) -> None:
    result = run("debug", program, "--update", program.parent / "u.diff", "--unwanted", "path(2, 3)")
    assert (result.exit_code, result.stdout) == (
        0,
        "undo 1 of 3 elements of epoch 2 (verified, minimum):\n  delete edge(2, 3)\nside effects: none\n",
    )


def test_debug_localises_with_proofs(program: Path) -> None:
    words = ("--update", program.parent / "u.diff", "--missing", "path(1, 2)", "--localise", "--proofs")
    result = run("debug", program, *words)
    assert result.exit_code == 0
    assert result.stdout.startswith("the faults come from 1 of 3 elements of epoch 2")
    assert "----------(R1)" in result.stdout


def test_debug_as_json(program: Path) -> None:
    words = ("--update", program.parent / "u.diff", "--unwanted", "path(2, 3)", "--format", "json")
    written = json.loads(run("debug", program, *words).stdout)
    assert written["elements"] == [{"sign": "+", "fact": "edge(2, 3)"}]
    assert written["verified"] is True


def test_debug_refuses_with_exit_codes(program: Path) -> None:
    update = ("--update", program.parent / "u.diff")
    assert run("debug", program, "--unwanted", "path(2, 3)", "--localise").exit_code == 2
    assert run("debug", program, "--unwanted", "path(2, 3)").exit_code == 1  # it does not hold
    assert run("debug", program, *update, "--localise", "--reject", "+edge(2, 3)").exit_code == 2
    older = run("debug", program, *update, "--unwanted", "path(7, 7)")
    assert older.exit_code == 1
    assert "error[E1001]" in older.stderr
    left = run("debug", program, *update, "--unwanted", "path(2, 3)", "--reject", "+edge(2, 3)")
    assert left.exit_code == 1
    assert "error[E1006]" in left.stderr


def test_debug_a_store(program: Path) -> None:
    store = program.parent / "store"
    assert run("init", store, program).exit_code == 0
    assert run("apply", store, program.parent / "u.diff").exit_code == 0
    result = run("debug", store, "--unwanted", "path(2, 3)")
    assert result.stdout.splitlines()[1:] == ["  delete edge(2, 3)", "side effects: none"]
    result = run("debug", store, "--blame", "path(1, 2)")
    assert result.stdout == "path(1, 2) disappeared in epoch 2, because of\n  -edge(1, 2)\n"
    assert run("debug", store, "--update", program.parent / "u.diff", "--unwanted", "path(2, 3)").exit_code == 2


def test_what_is_applied_leaves_nothing_that_fits(tmp_path: Path) -> None:
    """Though with less time than a search among values would need."""
    roads = "".join(f'road("a", "m{n}", {n}). road("m{n}", "z", {n}).\n' for n in range(1, 6))
    (tmp_path / "roads.dl").write_text(
        ".decl road(from: symbol, to: symbol, km: number)\n.decl distance(to: symbol, km: min number)\n"
        'distance("a", 0).\ndistance(y, d + k) :- distance(x, d), road(x, y, k).\n' + roads
    )
    store = tmp_path / "store"
    assert run("-q", "init", store, tmp_path / "roads.dl").exit_code == 0
    mended = run("debug", store, "--unwanted", 'distance("z", _)', "--time-limit", "5s", "--apply")
    assert mended.exit_code == 0
    assert mended.stdout.count("  delete road(") == 5
    assert run("query", store, 'distance("z", _)').stdout.strip() == "no"
