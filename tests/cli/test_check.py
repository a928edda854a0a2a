from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from elastalog.cli.main import COMMANDS
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
