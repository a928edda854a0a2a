"""The layout of programs: nothing is lost, nothing changes its meaning, and a second time changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from elastalog.cli.main import cli
from elastalog.diagnostics.source import Source
from elastalog.syntax.format import format_program
from elastalog.syntax.tokens import tokenize
from tests.commands import run
from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted([*ROOT.glob("tests/programs/*/program.dl"), *ROOT.glob("examples/**/*.dl")])
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def formatted(text: str) -> str:
    found, faults = format_program(Source("test.dl", text))
    assert faults == ()
    return found


def words(text: str) -> list[tuple[str, str]]:
    return [(kind, word) for kind, word, _ in tokenize(Source("test.dl", text))[0]]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_words_and_comments_stay_and_a_second_time_changes_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    once = formatted(text)
    assert words(once) == words(text)
    assert [c.rstrip() for c in COMMENT.findall(once)] == [c.rstrip() for c in COMMENT.findall(text)]
    assert formatted(once) == once
    assert all(line == line.rstrip() for line in once.split("\n"))


@pytest.mark.parametrize(
    ("text", "layout"),
    [*table(__file__, "layouts"), ("p(x) :- i . q(x).", None), ("", None)],
)
def test_layouts(text: str, layout: str | None) -> None:
    if layout is not None:
        assert formatted(text) == layout + "\n"
        assert formatted(layout + "\n") == layout + "\n"
    else:
        assert format_program(Source("test.dl", text))[0] in ("", text)


def test_the_command_prints_checks_and_writes(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p( 1 ).")
    runner = CliRunner()
    assert runner.invoke(cli, ["format", str(program)]).output == "p(1).\n"
    assert runner.invoke(cli, ["format", "-"], input="p( 1 ).").output == "p(1).\n"
    refused = runner.invoke(cli, ["format", "-"], input=b"// \xff\n")
    assert (refused.exit_code, "error[E0505]: byte 0xff is not UTF-8" in refused.stderr) == (1, True)
    checked = runner.invoke(cli, ["format", "--check", str(program)])
    assert (checked.exit_code, checked.output) == (1, f"would change: {program}\n")
    assert runner.invoke(cli, ["format", "--write", str(program)]).exit_code == 0
    assert program.read_text() == "p(1).\n"
    assert runner.invoke(cli, ["format", "--check", str(program)]).exit_code == 0


def test_a_text_with_errors_is_refused_and_left_alone(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p( 1 .")
    result = run("format", "--write", program)
    assert result.exit_code == 1
    assert "E0110" in result.output
    assert program.read_text() == "p( 1 ."


def test_included_files_stay() -> None:
    text = '.once\n  .include "a.dl"\n.decl  p(x:number)\np(1).\n.include "b.dl"\n'
    formatted, faults = format_program(Source("x.dl", text))
    assert faults == ()
    assert formatted == '.once\n.include "a.dl"\n.decl p(x: number)\np(1).\n.include "b.dl"\n'
    assert format_program(Source("x.dl", formatted)) == (formatted, ())


def test_a_fault_behind_an_included_file_leaves_the_text_as_it_is() -> None:
    text = '.include "a.dl"\np(1'
    formatted, faults = format_program(Source("x.dl", text))
    assert formatted == text
    assert faults
