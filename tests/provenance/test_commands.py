from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elastalog.cli.main import cli
from tests.reference.cases import PROGRAMS
from tests.tables import table

FOLDER = PROGRAMS / "pointer_analysis_thesis"

INTERVIEW = """\
1: vpt(Var, Obj) :-
    new(Var, Obj).

2: vpt(Var, Obj) :-
    assign(Var, Var2),
    vpt(Var2, Obj).

3: vpt(Var, Obj) :-
    load(Var, Inter, F),
    store(Inter2, F, Var2),
    vpt(Inter, InterObj),
    vpt(Inter2, InterObj),
    vpt(Var2, Obj).

Pick a rule number: 2
Pick a value for Var2: "ins"

assign("userSession", "ins") ✓   vpt("ins", "L4") X
---------------------------------------------------(R2)
             vpt("userSession", "L4")
"""


pytestmark = pytest.mark.usefixtures("compiled")


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [command, str(FOLDER / "program.dl"), "-F", str(FOLDER / "facts"), *arguments])


def shell(script: str) -> Result:
    return CliRunner().invoke(
        cli, ["shell", str(FOLDER / "program.dl"), "-F", str(FOLDER / "facts")], input=script, catch_exceptions=False
    )


def test_explain_shows_the_proof() -> None:
    result = run("explain", 'vpt("ins", "L3")')
    assert result.exit_code == 0
    assert result.stdout == (
        'new("ins", "L3")\n----------------(R1)\nvpt("ins", "L3")\n\nheight 1\n'
        "\nR1: vpt(Var, Obj) :- new(Var, Obj).  (program.dl:13)\n"
    )


def test_explain_in_other_forms_and_to_a_depth(tmp_path: Path) -> None:
    assert run("explain", 'vpt("ins", "L3")', "--depth", "0", "--format", "tree").stdout == 'vpt("ins", "L3") …\n'
    assert json.loads(run("explain", 'vpt("ins", "L3")', "--format", "json").stdout)["height"] == 1
    file = tmp_path / "proof.dot"
    result = run("explain", 'vpt("ins", "L3")', "--format", "dot", "--output", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert file.read_text().startswith("digraph proof {")


def test_a_pattern_is_explained_on_the_command_line_and_in_the_shell() -> None:
    assert run("explain", 'vpt(_, "L1")', "--depth", "0", "--format", "tree").stdout == 'vpt("admin", "L1") …\n'
    assert "R1: vpt(Var, Obj) :- new(Var, Obj)." in shell('explain vpt(X, "L1")\n').stdout
    several = shell("explain vpt(X, Y)\n")
    assert several.exit_code == 1
    assert "error[E0608]: several facts fit vpt(X, Y): vpt(" in several.stderr


def test_explain_of_an_absent_fact_ends_with_1() -> None:
    result = run("explain", 'vpt("ins", "L4")')
    assert result.exit_code == 1
    assert 'error[E0701]: vpt("ins", "L4") does not hold' in result.stderr
    assert result.stdout == ""


def test_whynot_shows_the_chosen_rule() -> None:
    result = run("whynot", 'vpt("userSession", "L4")', "--rule", "2", "--bind", "Var2=ins", "--format", "tree")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:4] == [
        '1. vpt("userSession", "L4")  (R2)',
        '   ├─ ✓ assign("userSession", "ins")',
        '   └─ X vpt("ins", "L4")',
    ]
    deep = run("whynot", 'vpt("userSession", "L4")', "--rule", "2", "--bind", "Var2=ins", "--depth", "2")
    below = '      ├─ X new("ins", "L4")\n      └─ … 2 more rules: ask about vpt("ins", "L4")\n'
    assert below in deep.stdout


def test_whynot_in_the_shell_goes_as_deep_as_was_said() -> None:
    lines = [shell(f'{first}whynot vpt("userSession", "L4")\n').stdout.count("X ") for first in ("", "setdepth 3\n")]
    assert 0 < lines[0] < lines[1]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(['vpt("ins", "L3")'], "E0702"), (['vpt("ins", "L4")', "--bind", "Nobody=1"], "E0711"), (["vpt(1, 2)"], "E0610")],
)
def test_wrong_whynots(arguments: list[str], code: str) -> None:
    result = run("whynot", *arguments)
    assert result.exit_code == 1
    assert code in result.stderr


def test_the_interview_of_the_thesis_in_the_shell() -> None:
    result = shell('explainnegation vpt("userSession", "L4")\n2\n"ins"\n')
    assert result.exit_code == 0
    assert result.stdout == INTERVIEW


def test_depth_and_subproofs_in_the_shell() -> None:
    result = shell('setdepth 1\nformat tree\nexplain alias("userSession", "ins")\nsubproof 1\n')
    assert result.stdout.splitlines() == [
        'alias("userSession", "ins")  (R1)',
        '├─ vpt("userSession", "L3") …',
        '├─ vpt("ins", "L3") …',
        '├─ "userSession" != "ins"',
        '└─ "L3" != "nullptr"',
        'subproof 1: vpt("userSession", "L3")',
        'subproof 2: vpt("ins", "L3")',
        'vpt("userSession", "L3")  (R2)',
        '├─ assign("userSession", "ins")',
        '└─ vpt("ins", "L3") …',
        'subproof 1: vpt("ins", "L3")',
    ]


def test_output_to_a_file_in_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    result = shell(
        f'output {file}\nformat tree\nexplain vpt("ins", "L3")\nwhynot new("a", "b")\noutput\nrule vpt 1\nrule 2\n'
    )
    assert result.stdout == ("vpt(Var, Obj) :- new(Var, Obj).\nvpt(Var, Obj) :- assign(Var, Var2), vpt(Var2, Obj).\n")
    assert file.read_text().splitlines() == [
        'vpt("ins", "L3")  (R1)',
        '└─ new("ins", "L3")',
        'new("a", "b") does not hold: it is not an explicit fact, and there are no rules for `new`',
    ]


@pytest.mark.parametrize("script", table(__file__, "wrong uses in the shell are errors"))
def test_wrong_uses_in_the_shell_are_errors(script: str) -> None:
    result = shell(script + "\n")
    assert result.exit_code == 1
    assert "error[E0" in result.stderr
