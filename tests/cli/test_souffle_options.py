"""Options that scripts written for Soufflé pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from tests.commands import run as command

pytestmark = pytest.mark.usefixtures("compiled")

PROGRAM = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl far(y: number)
.output far
far(y) :- path(1, y).
.decl never(x: number)
.printsize path
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(PROGRAM)
    Path("facts").mkdir()
    Path("out").mkdir()
    Path("facts/edge.facts").write_text("1\t2\n2\t3\n5\t6\n")


def run(*arguments: str) -> Result:
    return command("run", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-F", "facts", "-D", "out", "-w", "p.dl"),
        ("-Ffacts", "-Dout", "-w", "-j2", "p.dl"),
        ("--fact-dir=facts", "--output-dir=out", "--no-warn", "--jobs=auto", "p.dl"),
        ("-c", "-w", "--legacy", "-F", "facts", "-D", "out", "p.dl"),
        ("-w", "-z", "MinimiseProgramTransformer", "-a", "stats.json", "-F", "facts", "-D", "out", "p.dl"),
    ],
)
def test_options_that_mean_something_are_obeyed_and_the_others_have_no_effect(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "path\t4\n", "")
    assert sorted(Path("out/far.csv").read_text().split()) == ["2", "3"]


def test_warnings_are_shown_unless_not_wanted() -> None:
    assert "E0223" in run("-F", "facts", "-D", "out", "p.dl").stderr


@pytest.mark.parametrize("option", [("-m", "path"), ("--magic-transform=*",), ("-P", "magic-transform=*")])
def test_demand_is_asked_for_on_the_command_line(option: tuple[str, ...]) -> None:
    Path("p.dl").write_text(PROGRAM.replace(".printsize path\n", ""))
    result = run(*option, "-w", "-F", "facts", "-D", "out", "--stats", "stats.json", "p.dl")
    assert result.exit_code == 0
    assert sorted(Path("out/far.csv").read_text().split()) == ["2", "3"]
    assert '"@demand.path"' in Path("stats.json").read_text()


def test_arithmetic_wraps_by_a_pragma_of_the_command_line() -> None:
    Path("p.dl").write_text(".decl n(x: number)\n.output n\nn(x + 1) :- x = 9223372036854775807.\n")
    assert run("p.dl").exit_code == 1
    assert run("-P", "arithmetic=wrap", "-D", "out", "p.dl").exit_code == 0
    assert Path("out/n.csv").read_text() == "-9223372036854775808\n"


@pytest.mark.parametrize(
    ("option", "way"),
    [
        (("-o", "exe"), "run the program itself"),
        (("-g", "x.cpp"), "elastalog.open"),
        (("-p", "profile.log"), "--stats FILE.json"),
        (("-t", "explain"), "elastalog explain"),
        (("-r", "report.html"), "elastalog show"),
        (("--show=transformed-datalog",), "elastalog show"),
    ],
)
def test_options_for_which_there_is_something_else_say_what(option: tuple[str, ...], way: str) -> None:
    result = run(*option, "p.dl")
    assert result.exit_code == 2
    assert way in result.stderr


def test_a_pragma_without_effect_is_told() -> None:
    told = run("-P", "nonsense", "-F", "facts", "-D", "out", "p.dl")
    assert (told.exit_code, "-P nonsense has no effect" in told.stderr) == (0, True)
    assert "has no effect" not in run("-P", "arithmetic=wrap", "-F", "facts", "-D", "out", "p.dl").stderr
