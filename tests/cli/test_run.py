from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import elastalog
from elastalog.cli.main import cli
from elastalog.pipeline.files import write
from elastalog.program import Program
from elastalog.settings import SETTINGS
from tests.refusals import refused

PROGRAM = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
.printsize path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
ENDLESS = ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n"
SQUARE = """\
.decl a(x: number)
.decl triple(x: number, y: number, z: number)
.output triple
a(x) :- x = range(0, 2000).
triple(x, y, z) :- a(x), a(y), a(z), x + y = z + 5000.
"""


pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    return tmp_path


def run(folder: Path, *arguments: str, program: str = "p.dl") -> Result:
    return CliRunner().invoke(cli, ["run", str(folder / program), "-F", str(folder / "facts"), *arguments])


def lines(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


@pytest.mark.parametrize("rows", [1, write.LEAST_ROWS])
def test_a_byte_order_mark_in_a_text_comes_back_or_is_told(folder: Path, rows: int) -> None:
    read = '.decl i(x: symbol)\n.input i(IO=json, filename="i.json")\n.decl o(x: symbol)\no(x) :- i(x).\n'
    texts = [f"\ufeff{number}" for number in range(rows)]
    (folder / "facts" / "i.json").write_text(json.dumps([[text] for text in texts]))
    (folder / "plain.dl").write_text(f"{read}.output o\n")
    (folder / "quoted.dl").write_text(f"{read}.output o(rfc4180=true)\n")
    (folder / "again.dl").write_text(
        '.decl o(x: symbol)\n.input o(rfc4180=true, filename="o.csv")\n.output o(IO=jsonfile)\n'
    )
    plain = run(folder, "-D", str(folder), program="plain.dl")
    assert plain.exit_code == 0
    assert "symbol `\\ufeff0` of `o` cannot be written as plain text" in plain.stderr
    quoted = run(folder, "-D", str(folder / "facts"), program="quoted.dl")
    assert (quoted.exit_code, quoted.stderr) == (0, "")
    assert run(folder, "-D", str(folder), program="again.dl").exit_code == 0
    assert sorted(text for [text] in json.loads((folder / "o.json").read_text())) == sorted(texts)


def test_several_threads_write_what_one_writes(folder: Path) -> None:
    outputs = "".join(
        f'.decl r{i}(x: number, s: symbol)\n.output r{i}\nr{i}(x + {i}, cat("s", to_string(y))) :- path(x, y).\n'
        for i in range(6)
    )
    shown = ".decl few(x: number)\n.output few(IO=stdout)\nfew(x) :- edge(x, _).\n"
    named = '.decl named(x: number)\n.output named(filename="other.csv")\nnamed(x) :- edge(_, x).\n'
    (folder / "many.dl").write_text(PROGRAM + outputs + shown + named)
    results = []
    for jobs in ("1", "3"):
        out = folder / f"out{jobs}"
        result = run(folder, "-D", str(out), "-j", jobs, program="many.dl")
        assert (result.exit_code, result.stderr) == (0, "")
        results.append((result.stdout, {file.name: lines(file) for file in out.iterdir()}))
    assert results[0] == results[1]
    assert len(results[0][1]) == 8
    assert results[0][1]["r1.csv"] == ["2\ts2", "2\ts3", "3\ts3"]


def test_several_threads_write_a_large_file_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "LEAST_ROWS", 1)
    monkeypatch.setattr(SETTINGS, "write_in_threads_from", 20)
    monkeypatch.setattr(write, "ROWS_OF_A_PART", 4)
    together: list[int] = []

    def counted(words: Any, *rest: Any) -> Any:
        together.extend([len(words)] * (rest[-1] > 1))
        return lines_really(words, *rest)

    lines_really = write._lines
    monkeypatch.setattr(write, "_lines", counted)
    relations = ".decl large(x: number, s: symbol)\n.output large\n.decl small(x: number)\n.output small\n"
    (folder / "large.dl").write_text(f'{relations}large(x, cat("s", to_string(x))) :- x = range(0, 100).\nsmall(1).\n')
    for jobs in ("1", "2"):
        result = run(folder, "-D", str(folder / "out"), "-j", jobs, program="large.dl")
        assert (result.exit_code, result.stderr) == (0, "")
        assert sorted(lines(folder / "out" / "large.csv")) == sorted(f"{x}\ts{x}" for x in range(100))
        assert lines(folder / "out" / "small.csv") == ["1"]
    assert together == [100]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_symbol_that_breaks_its_line_is_written_with_a_warning(folder: Path, jobs: str) -> None:
    bad = '.decl bad(s: symbol)\n.output bad\nbad("a\\tb").\n.decl good(x: number)\n.output good\ngood(1).\n'
    (folder / "bad.dl").write_text(bad)
    result = run(folder, "-D", str(folder / "out"), "-j", jobs, program="bad.dl")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[E0516]: symbol `a\\tb` of `bad` cannot be written as plain text\n")
    assert (folder / "out" / "bad.csv").read_bytes() == b"a\tb\n"
    assert run(folder, "-D", str(folder / "out"), "-w", program="bad.dl").stderr == ""


def test_what_is_printed_need_not_be_read_back(folder: Path) -> None:
    (folder / "bad.dl").write_text('.decl bad(s: symbol)\n.output bad(IO=stdout)\nbad("a\\tb").\n')
    result = run(folder, program="bad.dl")
    shown = "---------------\nbad\n===============\na\tb\n===============\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, shown, "")


def test_outputs_are_written_and_sizes_are_printed(folder: Path) -> None:
    result = run(folder, "-D", str(folder / "out"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "path\t3\n", "")
    assert lines(folder / "out" / "path.csv") == ["1\t2", "1\t3", "2\t3"]
    assert os.listdir(folder / "out") == ["path.csv"]


def test_outputs_go_to_the_current_folder_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "edge.facts").write_text("5\t6\n")
    monkeypatch.chdir(folder)
    assert CliRunner().invoke(cli, ["run", "p.dl"]).exit_code == 0
    assert lines(folder / "path.csv") == ["5\t6"]


@pytest.mark.parametrize(
    ("facts", "out", "directives"),
    [
        ("edge.csv", ".", ".input edge(filename=\"edge.csv\", delimiter=\",\")\n.output edge"),
        ("edge.csv", ".", ".input edge(filename=\"edge.csv\", delimiter=\",\")\n.output path(filename=\"./edge.csv\")"),
        ("edge.json", "../facts", ".input edge(IO=json, filename=\"edge.json\")\n.output edge(IO=json, filename=\"edge.json\")"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_file_that_is_read_is_not_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, facts: str, out: str, directives: str
) -> None:
    monkeypatch.chdir(folder / "facts")
    Path(facts).write_text("1,2\n" if facts.endswith("csv") else "[[1, 2]]")
    before = Path(facts).read_bytes()
    (folder / "p.dl").write_text(PROGRAM.replace(".input edge", directives))
    found = run(folder, "-D", out)
    assert (found.exit_code, "E0538" in found.stderr, "which `.input edge` reads" in found.stderr) == (1, True, True)
    assert Path(facts).read_bytes() == before
    assert run(folder, "-D", str(folder / "out")).exit_code == 0


def test_a_hyphen_prints_the_outputs(folder: Path) -> None:
    result = run(folder, "-D", "-")
    assert result.exit_code == 0
    *body, ruler, size = result.stdout.splitlines()
    assert body[:4] == ["---------------", "path", "x\ty", "==============="]
    assert sorted(body[4:]) == ["1\t2", "1\t3", "2\t3"]
    assert (ruler, size) == ("===============", "path\t3")
    assert not list(folder.rglob("*.csv"))


@pytest.mark.parametrize("options", [["--strategy", "recompute"], ["--levels", "global"], ["-j", "2"], ["-q"]])
def test_options_do_not_change_the_outputs(folder: Path, options: list[str]) -> None:
    assert run(folder, "-D", str(folder / "out"), *options).exit_code == 0
    assert lines(folder / "out" / "path.csv") == ["1\t2", "1\t3", "2\t3"]


def test_warnings_of_the_program_are_shown_and_do_not_fail(folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM + ".decl unused(x: number) btree\n")
    result = run(folder, "-D", str(folder / "out"))
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[E")
    assert run(folder, "-D", str(folder / "out"), "-q").stderr == ""


@pytest.mark.parametrize(("options", "number"), [([], 1), (["-q"], 0)])
def test_warnings_about_facts_are_shown_unless_only_errors_are_wanted(
    folder: Path, options: list[str], number: int
) -> None:
    parameters = 'filename="calls.csv", rfc4180=true'
    (folder / "p.dl").write_text(
        f".decl calls(caller: symbol, callee: symbol)\n.input calls({parameters})\n.output calls\n"
    )
    (folder / "facts" / "calls.csv").write_text("caller,callee\na,b\n")
    result = run(folder, "-D", str(folder / "out"), *options)
    assert result.exit_code == 0
    assert lines(folder / "out" / "calls.csv") == ["a\tb", "caller\tcallee"]
    assert result.stderr.count("warning[E0527]") == number
    assert result.stderr.count(f"if it is a header: `.input calls({parameters}, headers=true)`") == number


# --- statistics


def test_the_table_of_statistics_goes_to_standard_error(folder: Path) -> None:
    result = run(folder, "-D", "-", "--stats")
    header, first, second, blank, relations, edge, path = [line.split() for line in result.stderr.splitlines()]
    assert header == ["seconds", "derivations", "rule"]
    found = {row[2]: (row[1], " ".join(row[3:])) for row in (first, second)}
    assert found == {"1": ("2", "path(x, y) :- edge(x, y)."), "2": ("1", "path(x, z) :- path(x, y), edge(y, z).")}
    assert (blank, relations) == ([], ["facts", "bytes", "relation"])
    assert (edge[0], edge[2], path[0], path[2]) == ("2", "edge", "3", "path")
    assert "seconds" not in result.stdout


def test_statistics_are_written_as_json(folder: Path) -> None:
    assert run(folder, "-D", str(folder / "out"), "--stats", str(folder / "stats.json")).stderr == ""
    statistics = json.loads((folder / "stats.json").read_text())
    assert [(rule["number"], rule["derivations"]) for rule in statistics["rules"]] == [(1, 2), (2, 1)]
    assert [(relation["name"], relation["facts"]) for relation in statistics["relations"]] == [("edge", 2), ("path", 3)]
    assert statistics["derivations"] == 3


def test_stats_before_the_program_is_the_table(folder: Path) -> None:
    arguments = ["run", "--stats", str(folder / "p.dl"), "-F", str(folder / "facts"), "-D", "-"]
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code, "derivations" in result.stderr) == (0, True)


def test_statistics_never_overwrite_what_is_no_json(folder: Path) -> None:
    result = run(folder, "--stats", str(folder / "facts" / "edge.facts"))
    assert (result.exit_code, "does not end in .json" in result.stderr) == (2, True)
    assert lines(folder / "facts" / "edge.facts") == ["1\t2", "2\t3"]


# --- what is at fault


def test_an_input_that_no_output_needs_may_have_no_file(folder: Path) -> None:
    program = PROGRAM + ".decl other(x: number)\n.input other\n.decl more(x: number)\nmore(x) :- other(x).\n"
    (folder / "p.dl").write_text(program)
    result = run(folder, "-D", str(folder / "out"))
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        0,
        "warning[E0519]: no file for `other`, which no output needs",
    )
    assert lines(folder / "out" / "path.csv") == ["1\t2", "1\t3", "2\t3"]
    (folder / "facts" / "other.facts").write_text("x\n")
    assert "E0502" in run(folder).stderr  # what is there is read, and has to be right
    with refused("E0510"):
        elastalog.open(program, folder)


@pytest.mark.parametrize("use", ["!b(x)", "0 = count : { b(_) }", "x < 9, b(x)"])
def test_an_input_that_a_rule_of_an_output_reads_is_needed(folder: Path, use: str) -> None:
    text = f".decl a, b(x: number)\n.input b\na(1).\n.decl r(x: number)\nr(x) :- a(x), {use}.\n.output r\n"
    (folder / "p.dl").write_text(text)
    assert "error[E0510]: no facts for input relation `b`" in run(folder).stderr


def test_fields_beyond_the_last_column_are_ignored_where_that_is_asked_for(folder: Path) -> None:
    (folder / "facts" / "edge.facts").write_text("1\t2\t9\n2\t3\t4\n")
    result = run(folder)
    assert result.exit_code == 1
    assert '`.pragma "extra-fields" "ignore"` does for all files' in result.stderr
    assert run(folder, "-P", "extra-fields=ignore", "-D", str(folder / "out")).exit_code == 0
    assert lines(folder / "out" / "path.csv") == ["1\t2", "1\t3", "2\t3"]
    (folder / "p.dl").write_text('.pragma "extra-fields" "ignore"\n' + PROGRAM)
    assert run(folder, "-D", str(folder / "again")).exit_code == 0
    assert lines(folder / "again" / "path.csv") == ["1\t2", "1\t3", "2\t3"]
    (folder / "facts" / "edge.facts").write_text("1\n")
    assert "E0501" in run(folder).stderr
    (folder / "facts" / "edge.facts").write_text("note\ty\tx\n?\t2\t1\n")
    (folder / "p.dl").write_text(PROGRAM.replace(".input edge", ".input edge(headers=true)"))
    assert run(folder, "-P", "extra-fields=ignore", "-D", str(folder / "named")).exit_code == 0
    assert lines(folder / "named" / "path.csv") == ["1\t2"]


def test_a_relation_that_only_updates_fill_has_no_file(folder: Path) -> None:
    text = ".decl closed(x: number)\n.input closed(IO=updates)\n.decl r(x: number)\nr(x) :- closed(x).\n.output r\n"
    (folder / "p.dl").write_text(text)
    result = run(folder, "-D", str(folder / "out"))
    assert (result.exit_code, result.stderr) == (0, "")
    with elastalog.open(folder / "p.dl") as db:
        assert db.apply({"closed": [(1,)]}).impact == 2


def test_a_table_of_changes_among_the_facts_is_told(folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM.replace(".input edge", ".input edge(headers=true)"))
    (folder / "facts" / "edge.facts").write_text("op\tx\ty\n+\t1\t2\n")
    assert "these are changes of `edge`, not facts" in run(folder, "-D", str(folder / "out")).stderr


def test_a_program_of_the_user_names_files_anywhere(folder: Path) -> None:
    text = PROGRAM.replace(".input edge", '.input edge(filename="../edges.txt")')
    (folder / "p.dl").write_text(text.replace(".output path", f'.output path(filename="{folder}/there.csv")'))
    (folder / "edges.txt").write_text("4\t5\n")
    assert run(folder, "-D", str(folder / "out")).exit_code == 0
    assert lines(folder / "there.csv") == ["4\t5"]


def test_a_program_of_a_store_names_files_below_its_folders(folder: Path) -> None:
    text = PROGRAM.replace(".output path", '.output path(filename="../there.csv")')
    program = Program.reopen(text, "p.dl")
    with elastalog.open(program, folder / "facts") as db, refused("E0512"):
        write.write_output(program.checked.relations["path"], db["path"].to_arrow(), folder / "out")


@pytest.mark.parametrize(
    "arguments",
    [
        ["-F", "no such folder"],
        ["--max-memory", "2X"],
        ["--max-memory", "0"],
        ["--timeout", "soon"],
        ["--strategy", "elastc"],
        ["--engine", "diesel"],
        ["-j", "0"],
        ["--bad-rows", "ignore"],
        ["-q", "-v"],
    ],
)
def test_wrong_usage_is_2(folder: Path, arguments: list[str]) -> None:
    result = run(folder, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_a_program_is_needed() -> None:
    result = CliRunner().invoke(cli, ["run"])
    assert (result.exit_code, "Missing argument 'PROGRAM'" in result.stderr) == (2, True)


BAD_ROWS = {"facts/edge.facts": "1\t2\nx\t3\n"}


@pytest.mark.parametrize(
    ("files", "options", "code", "told"),
    [
        ({"p.dl": PROGRAM + "path(x, y) :- egde(x, y).\n"}, [], 1, ["error[E0204]"]),
        ({"facts/edge.facts": None}, [], 1, ["error[E0510]: no facts for input relation `edge`\n"]),
        ({}, ["-D", __file__], 1, ["error[E0517]"]),
        (BAD_ROWS, [], 1, ["error[E0502]", "edge.facts:2"]),
        (BAD_ROWS, ["--bad-rows", "skip", "--max-bad-rows", "0"], 3, ["error[E0513]"]),
        ({"p.dl": SQUARE}, ["--max-memory", "1M"], 3, ["error[E0604]"]),
    ],
)
def test_what_goes_wrong_is_told_and_writes_nothing(
    folder: Path, files: dict[str, str | None], options: list[str], code: int, told: list[str]
) -> None:
    for name, text in files.items():
        (folder / name).unlink() if text is None else (folder / name).write_text(text)
    result = run(folder, "-D", str(folder / "out"), *options)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(told[0])
    assert told[-1] in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_bad_rows_are_skipped_or_set_aside_beside_the_outputs(folder: Path, policy: str) -> None:
    (folder / "facts" / "edge.facts").write_text(BAD_ROWS["facts/edge.facts"])
    result = run(folder, "-D", str(folder / "out"), "--bad-rows", policy, "--format", "json")
    assert (result.exit_code, lines(folder / "out" / "path.csv")) == (0, ["1\t2"])
    warning = json.loads(result.stderr)[0]
    assert (warning["severity"], warning["code"]) == ("warning", "E0502")
    if policy == "skip":
        assert warning["message"] == "1 bad row of `edge` skipped"
        assert "edge.facts:2" in result.stderr
    else:
        assert json.loads((folder / "out" / "edge.bad.jsonl").read_text())["line"] == 2


# --- limits, interruption, broken pipes


def test_the_time_limit_is_3(folder: Path) -> None:
    (folder / "p.dl").write_text(ENDLESS)
    began = time.process_time()
    result = run(folder, "-D", str(folder / "out"), "--timeout", "300ms")
    assert (result.exit_code, result.stderr[:12]) == (3, "error[E0603]")
    assert time.process_time() - began < 20
    assert not (folder / "out").exists()


def process(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "elastalog", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=_environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "p.dl", "-D", "out"), "interrupted: nothing was written"),
        (("init", "out", "p.dl"), "interrupted"),
        (("query", "p.dl", "n(X)"), "interrupted"),
    ],
)
def test_interruption_stops_soon_and_writes_nothing(folder: Path, words: tuple[str, ...], told: str) -> None:
    (folder / "p.dl").write_text(ENDLESS + ".input n(IO=stdin)\n")
    started = process(folder, *words, "-F", "facts", "--timeout", "5m")
    # More than a pipe holds: when all is written, the command is reading.
    started.stdin.write("0\n" * 200_000)
    started.stdin.close()
    started.stdin = None
    time.sleep(0.3)
    assert started.poll() is None
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=30)
    assert (started.returncode, errors.splitlines()[-1]) == (130, told)
    assert "Traceback" not in errors
    assert not (folder / "out").exists()


@pytest.mark.parametrize("words", [("run", "p.dl"), ("init", "kept", "p.dl"), ("query", "p.dl", "n(X)")])
def test_a_terminal_shows_how_it_goes(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "p.dl").write_text(ENDLESS)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "elastalog", *words, "--timeout", "1s"]
    ended = subprocess.run(command, cwd=folder, env=_environment() | {"TERM": "xterm"}, stderr=theirs, timeout=60)
    os.close(theirs)
    assert ended.returncode == 3
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "stratum 1 of" in shown


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    (folder / "facts" / "edge.facts").write_text("".join(f"{x}\t{x + 1}\n" for x in range(600)))
    started = process(folder, "run", "p.dl", "-F", "facts", "-D", "-")
    assert started.stdout.readline() == "---------------\n"
    started.stdout.close()
    errors = started.stderr.read()
    assert (started.wait(timeout=30), "Traceback" in errors, "Error" in errors) == (0, False, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("command", ["--version", "--help", "doctor", "completion bash", "show p.dl"])
def test_what_is_only_told_can_not_be_written_either(folder: Path, command: str) -> None:
    words = [sys.executable, "-m", "elastalog", *command.split()]
    with open("/dev/full", "w") as full:
        result = subprocess.run(words, cwd=folder, env=_environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    told = "error: standard output cannot be written: no space left on device\n"
    assert (result.returncode, result.stderr) == (1, told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("command", ["run p.dl -F facts -D -", "shell p.dl -F facts"])
def test_an_output_that_can_not_be_written_is_1(folder: Path, command: str) -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "elastalog", *command.split()], cwd=folder, env=_environment(), input="dump\n",
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    first, *_ = result.stderr.splitlines()
    assert (result.returncode, first) == (1, "error[E0517]: cannot write the output: No space left on device")
    assert "Traceback" not in result.stderr
