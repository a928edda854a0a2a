"""Rule changes on the command line, in the shell, and in diff files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import elastalog
from elastalog.cli import compare
from elastalog.cli.shell_commands.state import Piece, signed
from elastalog.diagnostics.source import Source
from elastalog.pipeline.files.diff import parse_diff
from elastalog.program import rule_texts
from tests.commands import run
from tests.refusals import refused
from tests.tables import table

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

DIFF = """// rules and facts
+edge(3, 4).
+rule: .decl ends(x: number)
+rule: ends(y) :- edge(_, y), !edge(y, _).   // new
-rule: path(x,z) :- path(x,y), edge(y,z)
+ends(99).
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "rules.diff").write_text(DIFF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(lines: str) -> list[str]:
    result = run("shell", "reach.dl", "-F", ".", text=lines)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_diff_file_may_hold_rules(folder: Path) -> None:
    with elastalog.open("reach.dl", facts=".") as db:
        changes = db.apply("rules.diff")
        assert sorted(changes["ends"].inserted) == [(4,), (99,)]
        assert sorted(changes["path"].deleted) == [(1, 3)]
        assert rule_texts(db.program)[1:] == ("ends(y) :- edge(_, y), !edge(y, _).",)


def test_a_relation_named_rule_is_still_one() -> None:
    with elastalog.open(".decl rule(x: number)") as db:
        diff = parse_diff("+rule(1).\n", "x.diff", db.schemas)
        assert (diff.inserted["rule"].num_rows, diff.added_rules) == (1, ())


def test_bad_lines_are_named(folder: Path) -> None:
    (folder / "bad.diff").write_text("+rule: path(x, y) :- edeg(x, y).\n+edge(1, 9).\n")
    with elastalog.open("reach.dl", facts=".") as db:
        with refused("E0204"):
            db.apply("bad.diff")
        assert db.epoch == 1


def test_a_store(folder: Path) -> None:
    assert run("init", "reach.store", "reach.dl", "-F", ".").exit_code == 0
    applied = run("apply", "reach.store", "rules.diff", "--show-changes", "-q")
    assert applied.exit_code == 0, applied.output
    assert applied.stdout.splitlines() == [
        "+edge(3, 4).", "-path(1, 3).", "+path(3, 4).", "+ends(4).", "+ends(99).",
    ]  # fmt: skip
    assert run("query", "reach.store", "ends(X)").stdout.split() == ["4", "99"]
    log = run("log", "reach.store", "-n", "1").stdout.splitlines()
    assert [line.strip() for line in log[2:]] == [
        "-rule: path(x, z) :- path(x, y), edge(y, z).",
        "+rule: ends(y) :- edge(_, y), !edge(y, _).",
    ]
    written = json.loads(run("log", "reach.store", "-n", "1", "--format", "json").stdout)
    assert written["added_rules"] == ["ends(y) :- edge(_, y), !edge(y, _)."]
    assert run("verify", "reach.store").exit_code == 0
    diff = run("diff", "reach.store", "2", "1").stdout.splitlines()
    assert diff[:2] == ["-rule: ends(y) :- edge(_, y), !edge(y, _).", "+rule: path(x, z) :- path(x, y), edge(y, z)."]
    (folder / "back.diff").write_text("\n".join(line for line in diff if "path(" not in line or "rule" in line))
    assert run("apply", "reach.store", "back.diff").exit_code == 0
    assert run("query", "reach.store", "path(1, X)").stdout.split() == ["2", "3"]


def test_a_diff_of_programs_declares_what_its_rules_and_facts_use(folder: Path) -> None:
    assert run("init", "reach.store", "reach.dl", "-F", ".").exit_code == 0
    assert run("init", "other.store", "reach.dl", "-F", ".").exit_code == 0
    assert run("apply", "reach.store", "rules.diff").exit_code == 0
    diff = run("diff", "reach.store", "1", "2").stdout.splitlines()
    assert diff[:3] == [
        "-rule: path(x, z) :- path(x, y), edge(y, z).",
        "+rule: .decl ends(x: number)",
        "+rule: ends(y) :- edge(_, y), !edge(y, _).",
    ]
    derived = ("-path(", "+path(", "+ends(4)")
    (folder / "same.diff").write_text("\n".join(line for line in diff if not line.startswith(derived)))
    applied = run("apply", "other.store", "same.diff")
    assert applied.exit_code == 0, applied.output
    for pattern in ("ends(X)", "path(X, Y)"):
        here, there = (run("query", store, pattern).stdout for store in ("reach.store", "other.store"))
        assert here == there != ""
    assert not any(".decl" in line for line in run("diff", "reach.store", "2", "1").stdout.splitlines())


def test_debug(folder: Path) -> None:
    result = run("debug", "reach.dl", "-F", ".", "--update", "rules.diff", "--missing", "path(1, 3)")
    assert result.stdout.splitlines() == [
        "undo 1 of 4 elements of epoch 2 (verified, minimum):",
        "  add rule path(x, z) :- path(x, y), edge(y, z).",
        "side effects in the output: 2 facts appear: +path(1, 4), +path(2, 4)",
    ]
    result = run(
        "debug", "reach.dl", "-F", ".", "--update", "rules.diff", "--unwanted", "ends(4)", "--reject", "+edge(3, 4)",
        "--format", "json",
    )  # fmt: skip
    elements = json.loads(result.stdout)["elements"]
    assert elements == [{"sign": "+", "rule": "ends(y) :- edge(_, y), !edge(y, _)."}]


def test_the_shell_stages_rules_until_commit(folder: Path) -> None:
    assert shell(
        "addrule path(x, y) :- (path(y, x), x > 1 ; edge(y, x), x < 0).\n"
        "removerule 2; insert edge(9, 8)\n"
        "query path(2, X)\n"
        "pending\n"
        "commit\n"
        "rule 2\n"
        "rule path 3\n"
    ) == [
        "X = 3",
        "+rule: path(x, y) :- (path(y, x), x > 1 ; edge(y, x), x < 0).",
        "-rule: path(x, z) :- path(x, y), edge(y, z).",
        "+edge(9, 8)",
        "+edge(9, 8)",
        "-path(1, 3)",
        "+path(2, 1)",
        "+path(3, 2)",
        "+path(8, 9)",
        "+path(9, 8)",
        "epoch 2: 5 inserted, 1 deleted, 2 rules added, 1 removed",
        "path(x, y) :- path(y, x), x > 1.",
        "path(x, y) :- edge(y, x), x < 0.",
    ]


def test_the_shell_declares_and_fills_a_relation(folder: Path) -> None:
    assert shell(
        "addrule .decl mark(x: number)\naddrule mark(x) :- path(x, _), x > 1\ninsert mark(7); commit; query mark(X)\n"
    ) == ["+mark(2)", "+mark(7)", "epoch 2: 2 inserted, 0 deleted, 1 rule added, 0 removed", "X = 2", "X = 7"]


def test_the_shell_debugs_rules(folder: Path) -> None:
    assert shell(
        "load rules.diff\ncommit\n"
        "suggest +ends(4)\n"
        "reject ends(y) :- edge(_, y), !edge(y, _).\n"
        "suggest -path(1, 3); apply; rule 3\n"
    )[6:] == [
        "wanted: ends(4) absent",
        "undo 1 of 4 elements of epoch 2 (verified, minimum):",
        "  remove rule ends(y) :- edge(_, y), !edge(y, _).",
        "side effects in the output: none",
        ("undoing all of epoch 2 also brings back what it replaced (`undo 2`, in Python `db.apply(undo=2)`):"),
        "  add rule path(x, z) :- path(x, y), edge(y, z).",
        "`apply` does it; `reject ends(y) :- edge(_, y), !edge(y, _).` looks for another repair",
        "undo 1 of 4 elements of epoch 2 (verified, minimum):",
        "  delete edge(3, 4)",
        "side effects in the output: 1 fact disappears: -path(3, 4)",
        "`apply` does it; `reject edge(3, 4)` looks for another repair",
        "wanted: path(1, 3) present",
        "undo 1 of 4 elements of epoch 2 (verified, minimum):",
        "  add rule path(x, z) :- path(x, y), edge(y, z).",
        "side effects in the output: 2 facts appear: +path(1, 4), +path(2, 4)",
        "`apply` does it; `reject path(x, z) :- path(x, y), edge(y, z).` looks for another repair",
        "+path(1, 3)",
        "+path(1, 4)",
        "+path(2, 4)",
        "epoch 3: 3 inserted, 0 deleted, 1 rule added, 0 removed",
        "path(x, z) :- path(x, y), edge(y, z).",
    ]


def test_signs_in_the_body_of_a_rule_are_no_elements() -> None:
    source = Source("<shell>", "-p(x) :- q(y), x = y - 1. +q(1.5) -r(-2)")
    found = [(sign, piece.text) for sign, piece in signed(Piece(source, 0, len(source.text)))]
    assert found == [("-", "p(x) :- q(y), x = y - 1."), ("+", "q(1.5)"), ("-", "r(-2)")]


def test_a_rollback_drops_rules(folder: Path) -> None:
    assert shell("removerule 1\nrollback\npending\ncommit\nrule 1\n") == [
        "still epoch 1: nothing changed",
        "path(x, y) :- edge(x, y).",
    ]


@pytest.mark.parametrize(("line", "code"), table(__file__, "the shell refuses"))
def test_the_shell_refuses(folder: Path, line: str, code: str) -> None:
    result = run("shell", "reach.dl", "-F", ".", text=f"{line}\npending\ncommit\n")
    assert result.exit_code == 1
    assert code in result.stderr


def test_a_stream_may_change_rules(folder: Path) -> None:
    updates = folder / "updates"
    updates.mkdir()
    (updates / "1.diff").write_text("+edge(3, 4).\n-rule: path(x, z) :- path(x, y), edge(y, z).\n")
    (updates / "2.diff").write_text("+rule: path(x, z) :- edge(x, y), path(y, z).\n-edge(1, 2).\n")
    result = run("stream", "reach.dl", "-F", ".", "--updates", "updates", "--show-changes", "-q")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "// 1.diff", "+edge(3, 4).", "-path(1, 3).", "+path(3, 4).",
        "// 2.diff", "-edge(1, 2).", "-path(1, 2).", "+path(2, 4).",
    ]  # fmt: skip


def test_updates_of_a_stream_know_what_earlier_ones_declare(folder: Path) -> None:
    updates = folder / "updates"
    updates.mkdir()
    (updates / "1.diff").write_text(
        "+rule: ends(y) :- edge(_, y), !edge(y, _).\n+rule: .decl ends(x: number)\n+ends(9).\n"
    )
    (updates / "2.diff").write_text("-ends(9).\n+ends(8).\n")
    (updates / "10.diff").write_text("-rule: path(x, y) :- edge(y, x).\n")
    result = run("stream", "reach.dl", "-F", ".", "--updates", "updates", "--show-changes", "-q")
    assert result.stdout.splitlines() == [
        "// 1.diff", "+ends(3).", "+ends(9).", "// 2.diff", "-ends(9).", "+ends(8).",
    ]  # fmt: skip
    assert (result.exit_code, "E0616" in result.stderr, "in 10.diff" in result.stderr) == (1, True, True)
    (updates / "10.diff").unlink()
    outcome = compare.run_here(compare.Workload("reach.dl", ".", "updates"), "bfc+linked")
    assert (outcome.fault, outcome.sizes["ends"]) == (None, 2)


def test_the_shell_loads_lines_in_any_order(folder: Path) -> None:
    (folder / "later.diff").write_text("+rule: ends(y) :- edge(_, y).\n+rule: .decl ends(x: number)\n")
    assert shell("load later.diff; commit; query ends(X)")[-2:] == ["X = 2", "X = 3"]


def test_a_store_shows_the_program_of_its_last_epoch(folder: Path) -> None:
    assert run("init", "reach.store", "reach.dl", "-F", ".").exit_code == 0
    assert run("apply", "reach.store", "rules.diff").exit_code == 0
    shown = run("show", "reach.store").stdout
    assert "ends(y) :- edge(_, y), !edge(y, _)." in shown
    assert "path(x, y), edge(y, z)" not in shown


@pytest.mark.parametrize(("line", "code", "told"), table(__file__, "what no rule is"))
def test_what_no_rule_is(folder: Path, line: str, code: str, told: str) -> None:
    (folder / "bad.diff").write_text(f"{line}\n")
    with elastalog.open("reach.dl", facts=".") as db:
        with refused(code) as raised:
            db.apply("bad.diff")
        assert told in str(raised.value)


def test_blame_as_json_and_alone(folder: Path) -> None:
    (folder / "more.diff").write_text("+rule: path(x, x) :- edge(x, _).\n")
    asked = ("debug", "reach.dl", "-F", ".", "--update", "more.diff", "--blame", "path(1, 1)")
    assert json.loads(run(*asked, "--format", "json").stdout) == {
        "fact": "path(1, 1)", "what": "appeared", "epoch": 2,
        "elements": [{"sign": "+", "rule": "path(x, x) :- edge(x, _)."}],
    }  # fmt: skip
    assert run(*asked, "--unwanted", "path(2, 2)").exit_code == 2


def test_a_rejected_rule_may_be_written_as_in_a_diff_file(folder: Path) -> None:
    (folder / "more.diff").write_text("+rule: path(x, x) :- edge(x, _).\n")
    asked = ("debug", "reach.dl", "-F", ".", "--update", "more.diff", "--unwanted", "path(1, 1)")
    assert "E1006" in run(*asked, "--reject", "+rule: path(x, x) :- edge(x, _).").stderr


def test_a_stream_of_files_has_no_store(folder: Path) -> None:
    (folder / "updates").mkdir()
    result = run("stream", "reach.dl", "-F", ".", "--updates", "updates", "--store", "kept.store")
    assert (result.exit_code, "--store: only with --source" in result.stderr) == (2, True)
