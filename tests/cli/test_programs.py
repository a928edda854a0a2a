""""""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elastalog.cli.exits import Terminated, exit_codes
from elastalog.cli.main import COMMANDS, cli
from elastalog.cli.programs import STAGES
from elastalog.diagnostics.catalogue import CATALOGUE
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError, LimitReached
from tests.commands import run

GOOD = ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"
BAD = GOOD + "path(x, y) :- egde(x, y).\n"


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "program.dl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_a_program_without_faults_says_nothing(tmp_path: Path) -> None:
    result = run("check", written(tmp_path, GOOD))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_an_error_goes_to_standard_error(tmp_path: Path) -> None:
    result = run("check", written(tmp_path, BAD))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error[E0204]: unknown relation `egde`\n")
    assert "did you mean `edge`?" in result.stderr


def test_json_is_a_list_of_objects(tmp_path: Path) -> None:
    path = written(tmp_path, BAD)
    result = run("check", "--format", "json", path)
    assert result.exit_code == 1
    (error,) = json.loads(result.stderr)
    assert (error["code"], error["severity"]) == ("E0204", "error")
    assert (error["labels"][0]["file"], error["labels"][0]["line"], error["labels"][0]["column"]) == (path, 5, 15)


def test_json_of_a_good_program_is_an_empty_list(tmp_path: Path) -> None:
    result = run("check", "--format", "json", written(tmp_path, GOOD))
    assert (result.exit_code, json.loads(result.stderr)) == (0, [])


@pytest.mark.parametrize(("options", "shown"), [([], "warning"), (["-q"], ""), (["-v"], "warning note")])
@pytest.mark.parametrize("before", [True, False])
def test_verbosity(tmp_path: Path, options: list[str], shown: str, before: bool) -> None:
    path = written(tmp_path, ".decl a(x: number) btree\n")
    result = run(*options, "check", path) if before else run("check", path, *options)
    assert result.exit_code == 0
    assert [word for word in ("warning", "note") if f"{word}[E" in result.stderr] == shown.split()


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (b"\xff", "E0231", "byte 0xff at offset 0"),
        (GOOD.encode() + b"// caf\xe9\n", "E0231", "byte 0xe9"),
        (b"", None, ""),
        (b"\xef\xbb\xbf" + GOOD.encode(), None, ""),
        (GOOD.replace("\n", "\r\n").encode(), None, ""),
    ],
)
def test_bytes(tmp_path: Path, content: bytes, code: str | None, text: str) -> None:
    result = run("check", written(tmp_path, content))
    assert result.exit_code == (0 if code is None else 1)
    assert text in result.stderr
    if code is not None:
        assert result.stderr.startswith(f"error[{code}]")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    missing = run("check", str(tmp_path / "none.dl"))
    assert missing.exit_code == 1
    assert "error[E0230]: the program cannot be read: there is no such file" in missing.stderr
    folder = run("check", str(tmp_path))
    assert folder.exit_code == 1
    assert "it is a folder" in folder.stderr


def test_wrong_usage() -> None:
    assert run("check").exit_code == 2
    assert run("check", "-v", "-q", "x").exit_code == 2
    unknown = run("chekc")
    assert unknown.exit_code == 2
    assert "Did you mean 'check'?" in unknown.stderr
    assert "Did you mean 'explain' or 'whynot'?" in run("why", "p.dl").stderr
    assert "Did you mean 'debug' with '--missing'" in run("suggest", "p.dl").stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_teaches_with_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"elastalog {command}" in result.stdout


def test_many_errors_are_cut_off(tmp_path: Path) -> None:
    result = run("check", written(tmp_path, GOOD + "".join(f"path(x, y) :- q{i}(x, y).\n" for i in range(80))))
    assert result.stderr.count("error[E0204]") == 50
    assert result.stderr.rstrip().endswith("… and 30 more")


def test_check_imports_no_heavy_library(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    code = (
        "import sys; from elastalog.cli.main import cli\n"
        f"try: cli(['check', {path!r}])\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'pandas', 'pygments', 'rich', 'pyspark'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TEXT = (
    ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n"
    "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\nedge(1, 2).\n"
)


def show(folder: Path, stage: str, text: str = TEXT) -> Result:
    path = folder / "program.dl"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(cli, ["show", str(path), "--stage", stage])


def test_tokens(tmp_path: Path) -> None:
    lines = show(tmp_path, "tokens").stdout.splitlines()
    assert lines[:3] == ["1:1\tdirective\t.decl", "1:7\tname\tedge", "1:11\tsymbol\t("]


def test_tree(tmp_path: Path) -> None:
    lines = show(tmp_path, "tree").stdout.splitlines()
    start = lines.index("Clause @4:1")
    assert lines[start : start + 5] == [
        "Clause @4:1",
        "  head: Atom relation=path @4:1",
        "    Variable name=x @4:6",
        "    Variable name=y @4:9",
        "  body: Atom relation=edge @4:15",
    ]


def test_checked(tmp_path: Path) -> None:
    assert show(tmp_path, "checked").stdout.splitlines() == [
        ".decl edge(x: number, y: number)    // .input",
        ".decl path(x: number, y: number)",
        "edge(1, 2).",
        "path(x, y) :- edge(x, y).    // rule 1; path 1; x: number, y: number",
        "path(x, z) :- path(x, y), edge(y, z).    // rule 2; path 2; recursive; x: number, y: number, z: number",
    ]


def test_strata(tmp_path: Path) -> None:
    lines = show(tmp_path, "strata").stdout.splitlines()
    assert lines[0] == "stratum 0: edge (no rules)"
    assert lines[1] == "stratum 1: path (recursive)"


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_reports_faults(tmp_path: Path, stage: str) -> None:
    result = show(tmp_path, stage, 'edge(1, "a).')
    assert result.exit_code == 1
    assert "error[E0" in result.stderr
    assert "error[E0" not in result.stdout


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


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ElastalogError([Diagnostic("E0230", "gone")]), 1),
        (LimitReached([Diagnostic("E0230", "too much")]), 3),
        (InternalError("test", "broken"), 1),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
    ],
)
def test_each_failure_has_its_exit_code(failure: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, exit_codes():
        raise failure
    assert end.value.code == code
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_an_end_that_comes_while_a_class_is_made_is_no_fault(end: type[BaseException], code: int) -> None:
    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise end

    with pytest.raises(SystemExit) as found, exit_codes():

        class Loaded:
            field = Field()

    assert found.value.code == code


def test_other_failures_pass() -> None:
    with pytest.raises(ZeroDivisionError), exit_codes():
        raise ZeroDivisionError


def test_a_closed_pipe_is_no_failure() -> None:
    code = (
        "import sys; from elastalog.cli.exits import exit_codes\n"
        "with exit_codes():\n    for i in range(10**5): print('x' * 100)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0
