from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import elastalog
from elastalog.cli import reports, shell
from elastalog.cli.exits import Console
from elastalog.cli.shell_commands.registry import BY_NAME, COMMANDS
from elastalog.cli.shell_commands.state import Piece, ShellState, split, statements, without_comment
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.messages import message
from elastalog.diagnostics.source import Source
from elastalog.program import Program
from tests.commands import run
from tests.tables import table

PROGRAM = """\
.decl edge, path(x: number, y: number)
edge(1, 2).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl name(x: number, text: symbol)
name(0, "zero").
"""


pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.dl"
    path.write_text(PROGRAM)
    return str(path)


def script(program: str, text: str, *options: str) -> Result:
    return run("shell", program, *options, text=text)


def texts(text: str, separator: str | None = None) -> list[str]:
    text = without_comment(text) if separator is None else text
    piece = Piece(Source("<text>", text), 0, len(text))
    return [part.text for part in (statements(piece) if separator is None else split(piece, separator))]


# --- how a script is read


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("  \t ", []),
        ("// only a comment; commit", []),
        ("# the same", []),
        ("commit", ["commit"]),
        (
            "start; insert p(1), delete p(2); commit dump_changes;",
            ["start", "insert p(1), delete p(2)", "commit dump_changes"],
        ),
        ('insert p("a;b") ; commit // done; really', ['insert p("a;b")', "commit"]),
        ('insert p("a // b # c")', ['insert p("a // b # c")']),
        (r'insert p("a\"; b"); commit', [r'insert p("a\"; b")', "commit"]),
        (";;;", []),
        ('insert p("open; commit', ['insert p("open; commit']),
        ("insert p(1; commit", ["insert p(1", "commit"]),
    ],
)
def test_statements_of_a_line(line: str, expected: list[str]) -> None:
    assert texts(line) == expected


def test_facts_are_split_outside_parentheses_and_strings() -> None:
    assert texts('p(1, 2), q("a,b"), r()', ",") == ["p(1, 2)", ' q("a,b")', " r()"]


def test_a_pattern_deletes_all_explicit_facts_that_fit(program: str) -> None:
    told = script(program, "insert edge(1, 7), edge(2, 8); commit; delete edge(1, _), edge(2, 8); pending")
    assert told.stdout.splitlines()[-3:] == ["-edge(1, 2)", "-edge(1, 7)", "-edge(2, 8)"]


def test_a_text_without_quotes_deletes_nothing(tmp_path: Path) -> None:
    program = tmp_path / "road.dl"
    program.write_text('.decl road(x: symbol, y: symbol)\nroad("ulm", "bonn"). road("kiel", "bonn").\n')
    refused = script(str(program), "delete road(ulm, _)\ncommit\n")
    assert refused.exit_code == 1
    assert 'write `"ulm"` for the text, or `_` for any value' in refused.stderr
    assert script(str(program), 'delete road("ulm", _); pending').stdout == '-road("ulm", "bonn")\n'
    assert len(script(str(program), "delete road(_, _); pending").stdout.splitlines()) == 2
    assert script(str(program), "insert road(x, x)").stderr.count("E0608") == 1  # no pattern at all


def test_what_signs_mean_is_said_before_the_answer(program: str) -> None:
    told = script(program, "insert edge(2, 3); commit; suggest +path(1, 3)").stdout
    assert "wanted: path(1, 3) absent\n" in told
    told = script(program, "delete edge(1, 2); commit; localise -path(1, 2)").stdout
    assert "wanted: path(1, 2) present\n" in told


def test_a_fault_that_is_older_is_told_in_words_of_the_shell(program: str) -> None:
    told = script(program, "insert edge(8, 9); commit; localise +path(1, 2)").stderr
    assert "error[E1002]: path(1, 2) held already in epoch 1" in told
    advice = "`suggest +path(1, 2)` looks among all given facts, whenever they came; `blame` tells in which epoch"
    assert f"= help: {advice}" in told
    assert "E1002" not in script(program, "insert edge(8, 9); commit; suggest +path(1, 2)").stderr


def test_nothing_is_echoed(program: str) -> None:
    result = script(program, "insert edge(2, 3)\n\n// quiet\nrollback\n")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


SIGNS = "write `+` (or `unwanted`) before facts that should not hold, `-` (or `missing`) before those that should"


@pytest.mark.parametrize(
    ("text", "code", "place", "help_line"),
    [
        *table(__file__, "the first error ends a script"),
        ("insert edge(1, X)", "E0608", "1:8", message("E0608").helps[0]),
        ("delete edge(X, 2)", "E0608", "1:13", message("E0608.once").helps[1]),
        ("delete edge(_, X)", "E0608", "1:16", message("E0608.once").helps[1]),
        ("suggest +path(1, X)", "E0608", "1:17", message("E0608.once").helps[1]),
        ("suggest -path(7, _)", "E0608", "1:10", message("E0608.missing").helps[0]),
    ],
)
def test_the_first_error_ends_a_script(program: str, text: str, code: str, place: str, help_line: str) -> None:
    result = script(program, f"{text}\necho not reached\n")
    assert result.exit_code == 1
    assert "not reached" not in result.stdout
    assert result.stderr.startswith(f"error[{code}]: ")
    assert f" --> <stdin>:{place}\n" in result.stderr
    assert f"= help: {help_line}\n" in result.stderr
    assert result.stderr.endswith("the script ends here: commands after this one were not run\n")


def test_what_was_committed_before_an_error_was_printed(program: str) -> None:
    result = script(program, "insert edge(2, 3); commit\noops\n")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "epoch 2: 3 inserted, 0 deleted")


def test_an_error_of_a_file_names_the_line_of_the_script(program: str, tmp_path: Path) -> None:
    (tmp_path / "u.diff").write_text("+edge(1, 2).\n+egde(3, 4).\n")
    result = script(program, f"\nload {tmp_path / 'u.diff'}\n")
    assert result.exit_code == 1
    assert f"{tmp_path / 'u.diff'}:2" in result.stderr
    assert "in line 2 of the script" in result.stderr


def test_changes_left_pending_are_a_warning(program: str) -> None:
    result = script(program, "insert edge(2, 3), edge(3, 4)\n")
    assert (result.exit_code, result.stderr) == (0, "warning: 2 pending changes not committed\n")


def test_a_script_that_is_not_utf8_is_an_error(program: str) -> None:
    result = run("shell", program, text=b'echo a\ninsert name(1, "\xff")\n')
    assert (result.exit_code, result.stdout) == (1, "a\n")
    assert "the script is not UTF-8\n --> <stdin>:2:1\n" in result.stderr


def test_a_byte_order_mark_is_passed_over(program: str) -> None:
    assert run("shell", program, text=b"\xef\xbb\xbfecho a\r\n").stdout == "a\n"


def test_interruption_of_a_script_is_130(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from elastalog.backends.kernel.updates import KernelChanges

    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelChanges, "facts", interrupted)
    result = script(program, "insert edge(2, 3)\ncommit\necho not reached\n")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted: epoch 1 stands\n")


def test_exit_ends_a_script(program: str) -> None:
    assert script(program, "echo a; exit; echo b\necho c\n").stdout == "a\n"
    assert script(program, "echo a\nquit\necho c\n").stdout == "a\n"


def test_a_limit_during_a_commit_is_3(tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_text(".decl n(x: number)\n.input n(IO=updates)\nn(x + 1) :- n(x).\n")
    result = script(str(path), "insert n(1)\ncommit\n", "--timeout", "400ms")
    assert (result.exit_code, result.stderr[:12]) == (3, "error[E0603]")
    assert "in line 2 of the script: commit" in result.stderr


# --- commands


def test_the_commands_of_ddlog(program: str) -> None:
    result = script(program, "start; insert edge(2, 3), delete edge(1, 2); commit dump_changes;", "-q")
    assert result.stdout.splitlines() == [
        "-edge(1, 2)",
        "+edge(2, 3)",
        "-path(1, 2)",
        "+path(2, 3)",
        "epoch 2: 2 inserted, 2 deleted",
    ]


def test_a_quiet_commit_prints_nothing(program: str) -> None:
    assert script(program, "insert edge(2, 3); commit; changes", "-q").stdout.splitlines() == [
        "+edge(2, 3)",
        "+path(1, 3)",
        "+path(2, 3)",
    ]


def test_load_adds_to_the_pending_update(program: str, tmp_path: Path) -> None:
    (tmp_path / "u.diff").write_text("+edge(5, 6).\n-edge(1, 2).\n")
    result = script(program, f"insert edge(7, 8); load {tmp_path / 'u.diff'}; pending; commit")
    assert sorted(result.stdout.splitlines()[:3]) == ["+edge(5, 6)", "+edge(7, 8)", "-edge(1, 2)"]
    assert result.stdout.splitlines()[-1] == "epoch 2: 4 inserted, 2 deleted"


def test_an_insert_is_taken_whole_or_not_at_all(program: str) -> None:
    state = opened(program)
    line = "insert edge(8, 9), edge(9)"
    with pytest.raises(ElastalogError):
        shell._execute(state, Piece(Source("<text>", line), 0, len(line)))
    assert state.pending == []


def test_queries(program: str) -> None:
    text = (
        "query path(1, X)\nquery path(1, 2)\nquery path(2, 1)\nquery path(9, X)\nquery path(_, _)\nquery path(X, X)\n"
    )
    assert script(program, text).stdout.splitlines() == ["X = 2", "true", "false", "no answers", "true", "no answers"]


def test_relations_are_listed_as_they_are_declared(tmp_path: Path) -> None:
    (tmp_path / "b.dl").write_text(".decl b(x: symbol, k: min number)\n")
    assert script(str(tmp_path / "b.dl"), "relations").stdout == "b(x: symbol, k: min number): 0 facts\n"


def test_a_pattern_is_dumped_as_it_is_queried(program: str) -> None:
    assert script(program, "dump path(1, X)").stdout == script(program, "query path(1, X)").stdout == "X = 2\n"


def test_values_are_shown_as_the_language_writes_them(program: str) -> None:
    result = script(
        program, r'insert name(-1, "a\"b\\c\n\x1b"); delete name(0, "zero"); commit; dump name; query name(X, T)'
    )
    assert result.stdout.splitlines()[2:] == [
        "epoch 2: 1 inserted, 1 deleted",
        r'name(-1, "a\"b\\c\n\x1b")',
        r'X = -1, T = "a\"b\\c\n\x1b"',
    ]


def test_forecast_of_a_pending_update(program: str) -> None:
    assert script(program, "forecast").stdout == "nothing would change\n"
    assert script(program, "insert edge(2, 3); forecast; rollback").stdout.startswith("edge would be updated: ")
    assert script(program, "addrule path(x, x) :- edge(x, _).; forecast; rollback").stdout.startswith(
        "path would be updated: "
    )
    recomputed = script(program, "insert edge(2, 3); forecast; rollback", "--strategy", "recompute")
    assert recomputed.stdout.startswith("edge would be recomputed: ")


def test_relations_are_listed_with_their_sizes(program: str) -> None:
    assert script(program, "relations").stdout.splitlines() == [
        "edge(x: number, y: number): 1 fact",
        "path(x: number, y: number): 1 fact",
        "name(x: number, text: symbol): 1 fact",
    ]


def test_another_strategy_keeps_explicit_facts_and_the_pending_update(program: str) -> None:
    first = "delete edge(1, 2); insert edge(4, 5), path(8, 9); commit; insert edge(5, 6)\n"
    shown = script(program, first + "strategy recompute; strategy; dump; pending\n", "-q").stdout
    assert shown.splitlines() == [
        "recompute",
        "edge(4, 5)",
        "path(4, 5)",
        "path(8, 9)",
        'name(0, "zero")',
        "+edge(5, 6)",
    ]


def test_stats_show_no_names_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "count.dl"
    path.write_text(
        ".decl e(x: number)\n.input e(IO=updates)\n"
        ".decl n(x: number)\nn(s) :- s = sum y : { e(y) }, !e(s).\n.output n\n"
    )
    shown = script(path, "insert e(2), e(3); commit; stats", "-q").stdout
    assert "(made for negations and aggregates)" in shown
    assert not re.search(r"(?<!\w)@", shown)


def test_stats_name_the_strategy_and_the_rules(program: str) -> None:
    shown = script(program, "insert edge(2, 3); commit; stats", "-q").stdout
    assert shown.startswith("epoch 2, strategy elastic: ")
    assert "path(x, y) :- edge(x, y)." in shown


def test_verbose_says_what_was_chosen_and_why(program: str) -> None:
    result = script(program, "insert edge(2, 3); commit", "-v")
    assert "epoch 2: path: update (" in result.stderr
    assert "epoch 2: path" not in script(program, "insert edge(2, 3); commit").stderr


def test_help_names_every_command(program: str) -> None:
    shown = script(program, "help").stdout
    assert all(f"\n{command.usage} " in f"\n{shown}" for command in COMMANDS)
    assert script(program, "help quit").stdout.splitlines()[0] == "exit"


def test_names_of_commands_are_given_once() -> None:
    assert len(BY_NAME) == sum(1 + len(command.aliases) for command in COMMANDS)


@pytest.mark.parametrize("budget", ["-1", "much", "inf", "nan"])
def test_a_wrong_budget_is_wrong_usage(program: str, budget: str) -> None:
    assert script(program, "", "--budget", budget).exit_code == 2


# --- a conversation


def opened(program: str) -> ShellState:
    return ShellState(elastalog.open(program), "elastic", lambda *_: elastalog.open(program), is_interactive=True)


Conversation = Callable[..., tuple[ShellState, str, str]]


@pytest.fixture
def converse(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Conversation:
    """Types lines, or raises what stands for a key, and returns the state, the output and the errors."""

    def typed(*lines: str | BaseException) -> tuple[ShellState, str, str]:
        waiting = iter((*lines, EOFError()))

        def read(shown: str) -> str:
            line = next(waiting)
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr(shell, "make_prompt", lambda state: read)
        state = opened(program)
        shell._converse(state, Console("text", "quiet"))
        captured = capsys.readouterr()
        return state, captured.out, captured.err

    return typed


def test_an_error_leaves_the_pending_update(converse: Conversation) -> None:
    state, _, errors = converse("insert edge(2, 3)", "insert edge(3)", "comit")
    assert [diff.inserted for diff in state.pending] == [{"edge": [(2, 3)]}]
    assert ("E0607" in errors, "E0651" in errors, "1 pending change not committed" in errors) == (True, True, True)


def test_ctrl_c_at_the_prompt_changes_nothing(converse: Conversation) -> None:
    state, shown, _ = converse("insert edge(2, 3)", KeyboardInterrupt(), "query path(1, X)")
    assert (len(state.pending), shown) == (1, "X = 2\n")


def test_ctrl_c_in_a_command_keeps_the_epoch_and_the_pending_update(
    converse: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elastalog.backends.kernel.updates import KernelChanges

    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelChanges, "facts", interrupted)
    state, shown, errors = converse("insert edge(2, 3)", "commit", "query path(X, 3)", "query path(1, X)")
    assert (state.session.epoch, state.pending_size) == (1, 1)
    assert "interrupted: epoch 1 stands" in errors
    assert shown == "no answers\nX = 2\n"


def test_exit_ends_the_conversation(converse: Conversation) -> None:
    state, shown, _ = converse("exit", "echo not reached")
    assert (state.is_over, shown) == (True, "")


def test_a_person_sees_the_strategy_and_the_time(converse: Conversation) -> None:
    _, shown, _ = converse("insert edge(2, 3); commit")
    assert shown.splitlines()[-1].startswith("epoch 2: 3 inserted, 0 deleted (elastic; strata: ")
    assert shown.endswith(" ms)\n")


def test_nothing_shown_to_a_person_moves_the_cursor(converse: Conversation) -> None:
    _, shown, _ = converse('insert name(1, "\x9b31m\u202e"); commit')
    assert "\x9b" not in shown
    assert "\u202e" not in shown


def test_a_query_of_several_literals_where_progress_was_shown(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(reports, "_INTERVAL", 0)
    loaded = Program.load(program)
    with reports.progress_shown(loaded.checked, Console()) as report:
        db = elastalog.open(loaded, on_progress=report)
    assert list(db.query("path(1, X), edge(1, X)")) == [(2,)]


def test_a_line_goes_on_while_a_parenthesis_is_open(converse: Conversation) -> None:
    state, shown, errors = converse(
        "insert edge(2,", "3), edge(3, 4)", "commit", "query path(", KeyboardInterrupt(), "query edge(1, X)"
    )
    assert (state.session.epoch, errors) == (2, "")
    assert shown.splitlines()[-1] == "X = 2"


def test_a_line_of_a_script_goes_on_while_a_parenthesis_is_open(program: str) -> None:
    done = script(
        program, "// note (\ninsert edge(2, # to (\n3), edge(3, 4)\ncommit\nquery edge(1, X\n) // (\nquery nothing("
    )
    assert done.stdout.splitlines()[-1] == "X = 2"
    assert "<stdin>:7:" in done.stderr


def test_any_epoch_is_undone_and_the_log_begins_with_the_latest(program: str) -> None:
    done = script(program, "insert edge(2, 3); commit; insert edge(5, 6); commit; undo 2; query edge(X, Y); log")
    assert done.exit_code == 0
    shown = done.stdout.splitlines()
    assert shown[-6:-4] == ["X = 1, Y = 2", "X = 5, Y = 6"]
    assert [line.partition(",")[0] for line in shown[-4:]] == ["epoch 4", "epoch 3", "epoch 2", "epoch 1"]


def test_words_stand_for_signs(program: str) -> None:
    told = [
        script(program, f"insert edge(2, 3); commit; suggest {faults}").stdout
        for faults in ("+path(1, 3) -path(7, 8)", "unwanted path(1, 3), missing path(7, 8)")
    ]
    assert "wanted: path(1, 3) absent, path(7, 8) present\n" in told[0]
    assert told[0] == told[1]


def test_candidates_are_given_to_a_suggestion(program: str) -> None:
    asked = "suggest facts -path(1, 9) --candidate edge(2, 9) --candidate=-edge(1, 2) --candidate edge(1, 9)"
    done = script(program, f"{asked}; reject edge(1, 9); apply; suggest -path(1, 8)")
    assert done.exit_code == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith(("wanted", "  insert", "  delete"))]
    assert told[:3] == ["wanted: path(1, 9) present", "  insert edge(1, 9)", "  insert edge(2, 9)"]
    assert told[3] == "wanted: path(1, 8) present"  # of its own candidates
    assert len(told) == 5
    assert "`--candidate E(1)`" in script(program, "help suggest").stdout
    assert "`localise` takes no candidates" in script(program, "localise -path(1, 9) --candidate edge(2, 9)").stderr
    deleting = "suggest facts +path(1, 2) -path(1, 9) --candidate edge(1, 9) --candidate -edge(1, 2)"
    assert "  delete edge(1, 2)\n" in script(program, deleting).stdout


# --- the prompt


@pytest.mark.parametrize(
    ("before", "start", "found"),
    [
        ("ins", -3, ["insert "]),
        ("c", -1, ["commit", "changes"]),
        ("insert e", -1, ["edge("]),
        ("insert edge(1, 2), p", -1, ["path("]),
        ("start; delete na", -2, ["name("]),
        ("dump p", -1, ["path"]),
        ("strategy rec", -3, ["recompute"]),
        ("help roll", -4, ["rollback"]),
        ("commit d", -1, []),
    ],
)
def test_completion(program: str, before: str, start: int, found: list[str]) -> None:
    place, offered = shell.completions(before, opened(program))
    assert offered == found
    assert not found or place == start


def test_files_are_completed(program: str, tmp_path: Path) -> None:
    (tmp_path / "u1.diff").touch()
    assert shell.completions(f"load {tmp_path}/u", opened(program))[1] == [f"{tmp_path}/u1.diff"]


def test_without_prompt_toolkit_lines_are_read_plainly(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    assert shell.make_prompt(opened(program)) is builtins.input


def test_the_history_is_in_the_folder_for_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert shell.history_file() == tmp_path / "state" / "elastalog" / "history"
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert shell.history_file() is None


# --- bad rows of files that are loaded


@pytest.mark.parametrize("has_store", [False, True])
def test_load_obeys_the_policy_for_bad_rows(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_store: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if has_store:
        elastalog.open(program, store="p.store").close()
        program = "p.store"
    (tmp_path / "next.diff").write_text('+edge(2, 3).\n+edge("x", 3).\n+edgy(1, 2).\n')
    load = f"load {tmp_path / 'next.diff'}\ncommit\n"
    refused = script(program, load)
    assert refused.exit_code == 1
    assert "E0502" in refused.stderr
    passed = script(program, load, "--bad-rows", "quarantine")
    assert passed.exit_code == 0
    assert "+edge(2, 3)" in passed.stdout
    assert "1 bad row of `edge` set aside" in passed.stderr
    assert '"line": 2' in (tmp_path / "edge.bad.jsonl").read_text()
    skipped = script(program, load, "--bad-rows", "skip", "--max-bad-rows", "0")
    assert skipped.exit_code == 3
    assert "E0513" in skipped.stderr


def test_a_shell_of_a_store_says_that_it_reads_no_fact_files(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    elastalog.open(program, store="p.store").close()
    (tmp_path / "edge.facts").write_text("8\t9\n")
    told = script("p.store", "query edge(8, X)", "-F", ".")
    assert (told.exit_code, told.stdout) == (0, "no answers\n")
    assert told.stderr == "note: p.store has its own facts, so -F was not read; `load` adds and removes facts\n"
    assert script("p.store", "query edge(8, X)").stderr == ""


# --- looking before and going back


def test_of_many_changes_the_first_of_each_relation_are_shown(program: str) -> None:
    facts = ", ".join(f"edge({n}, {n + 100})" for n in range(50, 100))
    found = script(program, f"insert {facts}; preview; preview all; commit; describe edg").stdout
    assert found.count("+edge(") == 5 + 50 + 5
    assert "… and 45 more of `edge`; `preview all` shows all\n" in found
    assert "… and 45 more of `edge`; `changes` shows all\n" in found
    assert "did you mean `edge`?" in script(program, "describe edg").stderr


def test_preview_shows_what_a_commit_would_change(program: str) -> None:
    found = script(program, "insert edge(4, 5); preview; query edge(4, X); commit")
    lines = found.stdout.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("it would change "))
    before = lines[:at]
    assert "+edge(4, 5)" in before
    assert lines[at] == f"it would change {len(before)} facts"
    assert lines[at + 1] == "no answers"
    assert lines[at + 2 : -1] == before


def test_undo_takes_back_the_latest_update(program: str) -> None:
    found = script(program, "insert edge(1, 2), insert edge(4, 5); commit; undo; undo; query edge(4, X)")
    epochs = [line for line in found.stdout.splitlines() if line.startswith("epoch")]
    assert [line.split(":")[0] for line in epochs] == ["epoch 2", "epoch 3", "epoch 4"]
    assert found.stdout.splitlines()[-1] == "X = 5"
    assert "+edge(4, 5)" in found.stdout
    assert "-edge(4, 5)" in found.stdout


def test_undo_takes_back_rules_and_keeps_what_was_there_before(program: str) -> None:
    found = script(
        program,
        "addrule edge(7, 7) :- edge(1, 2).; insert edge(1, 2); commit; undo; query edge(7, X); query edge(1, 2)",
    )
    assert found.stdout.splitlines()[-2:] == ["no answers", "true"]


def test_undo_without_an_update_is_an_error(program: str) -> None:
    assert "there is nothing to undo" in script(program, "undo").stderr
    assert "an update is already under way" in script(program, "insert edge(4, 5); undo").stderr


def test_more_derivations_of_what_does_not_hold_are_shown_on_request(tmp_path: Path) -> None:
    rows = "".join(f'e({n}, 0). f({n}, "no").\n' for n in range(1, 9))
    declared = ".decl e(x: number, y: number)\n.decl f(x: number, y: symbol)\n.decl p(y: number)\n"
    (tmp_path / "p.dl").write_text(f'{declared}p(y) :- e(x, y), f(x, "yes").\n{rows}')
    few, many = (script(str(tmp_path / "p.dl"), f"{first}whynot p(0)").stdout for first in ("", "setlimit 20; "))
    assert (few.count("(R1)"), many.count("(R1)")) == (5, 8)
    assert "3 more derivations are not shown" in few
    assert "in the shell: `setlimit`" in few
    assert "not shown" not in many
    assert "E0652" in script(str(tmp_path / "p.dl"), "setlimit no").stderr


def test_a_rule_that_is_evaluated_in_several_ways_has_one_line_of_statistics(tmp_path: Path) -> None:
    rule = "n(x, c) :- a(x), c = count : { a(_) }."
    (tmp_path / "n.dl").write_text(f".decl a(x: number)\n.decl n(x: number, c: number)\n{rule}\na(1).\n")
    assert script(str(tmp_path / "n.dl"), "stats").stdout.count(rule) == 1
