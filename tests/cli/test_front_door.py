"""Commands for the first hour, and for whoever keeps a store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import elastalog
from elastalog.cli import compare
from elastalog.cli.main import COMMANDS
from tests.closures import REACH as PROGRAM
from tests.commands import run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    with elastalog.open(tmp_path / "reach.dl", {"edge": [(1, 2), (2, 3)]}, store=tmp_path / "store"):
        return tmp_path / "store"


def test_doctor_finds_the_core_well() -> None:
    found = run("doctor")
    assert found.exit_code == 0, found.stdout
    assert found.stdout.endswith("the core works\n")
    assert "store: fine" in found.stdout


def test_the_version_tells_what_evaluates() -> None:
    found = run("--version")
    assert re.fullmatch(r"elastalog, version \S+ \(Python \S+, numpy \S+, pyarrow \S+\)\n", found.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    found = run("completion", shell)
    assert found.exit_code == 0
    assert "_ELASTALOG_COMPLETE" in found.stdout


def test_backup_makes_a_store(store: Path, tmp_path: Path) -> None:
    assert run("backup", store, tmp_path / "copy").exit_code == 0
    assert run("query", tmp_path / "copy", "path(1, X)").stdout == "2\n3\n"
    again = run("backup", store, tmp_path / "copy")
    assert again.exit_code == 1
    assert "error[E0802]" in again.stderr
    assert run("backup", tmp_path / "nothing", tmp_path / "other").exit_code == 1


def test_updates_from_standard_input_and_their_preview(store: Path) -> None:
    told = run("apply", store, "-", "--preview", text="+edge(3, 4).\n")
    assert told.stdout.splitlines() == ["+edge(3, 4).", "+path(1, 4).", "+path(2, 4).", "+path(3, 4)."]
    assert run("query", store, "path(3, X)").stdout == ""
    done = run("apply", store, "-", "--show-changes", text="+edge(3, 4).\n")
    assert done.stdout == told.stdout
    many = "".join(f"+edge(50, {n}).\n" for n in range(60, 75))
    told = run("apply", store, "-", "--preview", text=many)
    assert [line[:6] for line in told.stdout.splitlines()] == ["+edge("] * 10 + ["+path("] * 10
    assert "… and 5 more of `edge`; `--show-changes` shows all\n" in told.stderr
    assert len(run("apply", store, "-", "--preview", "--show-changes", text=many).stdout.splitlines()) == 30
    again = run("apply", store, "-", text="+edge(3, 4).\n-edge(8, 8).\n").stderr
    assert "changes nothing, 2 without effect (edge(3, 4) there already; edge(8, 8) not there)" in again
    assert run("apply", store, "-", text="+edge(3, .\n").exit_code == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_updates_from_a_pipe(store: Path, tmp_path: Path) -> None:
    """What is read once is not looked at before."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("+edge(3, 4).\n",))
    writer.start()
    assert "+path(1, 4)." in run("apply", store, pipe, "--preview").stdout
    writer.join()


def test_a_variable_that_is_called_like_a_text_is_told_of(tmp_path: Path) -> None:
    program = tmp_path / "may.dl"
    program.write_text('.decl may(who: symbol, what: symbol)\nmay("ann", "read"). may("eve", "write").\n')
    asked = run("query", program, 'may(eve, "read")')
    assert (asked.stdout, asked.exit_code) == ('"ann"\n', 0)
    assert "warning[E0618]: `eve` is a variable here, and stands for any text" in asked.stderr
    assert '= help: if the text itself is meant, write `"eve"`' in asked.stderr
    assert "warning" not in run("query", program, 'may(Who, "read")').stderr
    assert "`ann` is a variable here" in run("explain", program, 'may(ann, "read")').stderr
    assert "no answers" in run("query", program, 'may("zoe", What)').stderr


def test_programs_from_standard_input() -> None:
    assert run("check", "-", text=PROGRAM).exit_code == 0
    wrong = run("check", "-", text="p(x) :- q(x).\n")
    assert wrong.exit_code == 1
    assert "<stdin>:1" in wrong.stderr


def test_a_store_goes_over_to_another_program(store: Path, tmp_path: Path) -> None:
    (tmp_path / "next.dl").write_text(PROGRAM + ".decl far(x: number)\nfar(x) :- path(1, x), !edge(1, x).\n")
    told = run("upgrade", store, tmp_path / "next.dl", "--preview")
    assert told.stdout == "+far(3).\n"
    assert "+rule: far(x) :- path(1, x), !edge(1, x)." in told.stderr
    done = run("upgrade", store, tmp_path / "next.dl")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "epoch 2: changes 1 fact" in done.stderr
    assert run("query", store, "far(X)").stdout == "3\n"
    again = run("upgrade", store, tmp_path / "next.dl")
    assert "epoch 2: changes nothing" in again.stderr


def test_a_shell_on_a_store_changes_it(store: Path) -> None:
    told = run("shell", store, text="insert edge(3, 4); commit; query path(1, X)")
    assert told.exit_code == 0
    assert "epoch 2: 4 inserted, 0 deleted" in told.stdout
    with elastalog.open(store=store) as db:
        assert (3, 4) in db["edge"]


def test_a_program_alone_is_no_command() -> None:
    assert "No such command 'reach.dl'. Did you mean 'run reach.dl'?" in run("reach.dl").stderr


def test_help_has_groups_and_whole_summaries() -> None:
    found = run("--help").stdout
    assert [line for line in found.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)] == [
        "Options:", "Write programs:", "Evaluate:", "Explain and repair:", "Keep a store:", "Serve:", "Get help:",
    ]  # fmt: skip
    assert "..." not in found.replace("[ARGS]...", "")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", found, re.MULTILINE), name


def test_compare_draws_nothing_unasked_and_says_a_common_fault_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates" / "1.diff").write_text("+edge(2, 3).\n")
    asked = ("compare", "reach.dl", "--updates", "updates", "--strategies", "elastic,recompute")
    failed = run(*asked)
    assert failed.exit_code == 1
    assert failed.stdout.startswith("elastic, recompute: not run: ")
    assert failed.stdout.count("no facts for input relation") == 1
    (tmp_path / "edge.jsonl").write_text('{"from": 1, "to": 2, "note": "new"}\n')
    done = run(*asked)
    assert (done.exit_code, done.stderr.count("warning[E0535]"), "Warning" in done.stderr) == (0, 1, False)
    assert not list(tmp_path.glob("*.svg"))
    monkeypatch.setattr(compare, "run_alone", compare.run_here)
    assert run(*asked, "--plot", "times.svg").exit_code == 0
    assert (tmp_path / "times.svg").exists()
    assert run(*asked, "--plot", "plots/times").exit_code == 0
    assert (tmp_path / "plots" / "times.png").exists()
    none = run(*asked, "--plot", "times.odd")
    assert (none.exit_code, none.stderr) == (
        0, "no plot: matplotlib writes no .odd; give a name that ends in .svg or .png\n"
    )  # fmt: skip
    refused = run(*asked, "--plot", "reach.dl/times.svg")
    assert (refused.exit_code, "error[E0517]: cannot write `reach.dl/times.svg`" in refused.stderr) == (1, True)


def test_a_program_that_writes_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "quiet.dl").write_text(".decl n(x: number)\nn(1).\n")
    found = run("run", tmp_path / "quiet.dl")
    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr == f"nothing was written: {tmp_path / 'quiet.dl'} has no `.output`, nor `.printsize`\n"
    assert run("-q", "run", tmp_path / "quiet.dl").stderr == ""
    (tmp_path / "quiet.dl").write_text(".decl n(x: number)\nn(1).\n.printsize n\n")
    assert run("run", tmp_path / "quiet.dl").stderr == ""


def test_a_package_that_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with elastalog.open(".decl n(x: number)\nn(1).\n") as db:
        for ask in (db["n"].to_pandas, db.apply({"n": [(2,)]}).to_pandas):
            with pytest.raises(ImportError, match="pip install pandas") as error:
                ask()
            assert isinstance(error.value, elastalog.ElastalogError)


def test_warnings_of_data_are_silenced_by_the_command_alone(tmp_path: Path) -> None:
    """Not by what Python programs of the same shell are told."""
    (tmp_path / "r.dl").write_text('.decl r(a: symbol)\n.input r(filename="r.csv", rfc4180=true, headers=true)\n')
    (tmp_path / "r.csv").write_text("a title\na\nx\n")
    command = [sys.executable, "-m", "elastalog", "run", "r.dl", "-D", "out"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    for quiet in ((), ("-q",)):
        done = subprocess.run(
            [*command, *quiet], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
        )
        assert ("warning[E0527]" in done.stderr) == (not quiet)
