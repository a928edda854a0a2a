"""The commands on a store: what they print, and how they end."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError
from tests.commands import run

PROGRAM = """.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Edges 1-2-3, then 3-4 in place of 1-2."""
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "u.diff").write_text("+edge(3, 4).\n-edge(1, 2).\n")
    made = run("init", tmp_path / "store", tmp_path / "reach.dl", "-F", tmp_path)
    assert (made.exit_code, made.stdout) == (0, ""), made.output
    assert "epoch 1: 5 facts" in made.stderr
    applied = run(
        "apply", tmp_path / "store", tmp_path / "u.diff", "--source", "tests", "--batch", "1", "--show-changes"
    )
    assert applied.exit_code == 0, applied.output
    assert applied.stdout == "-edge(1, 2).\n+edge(3, 4).\n-path(1, 2).\n-path(1, 3).\n+path(2, 4).\n+path(3, 4).\n"
    return tmp_path / "store"


def test_init_refuses_a_store_that_exists(store: Path) -> None:
    again = run("init", store, store.parent / "reach.dl", "-F", store.parent)
    assert again.exit_code == 1
    assert "error[E0802]" in again.stderr


def test_a_store_without_its_pointer_says_what_is_there_and_what_to_do(store: Path) -> None:
    (store / "CURRENT").unlink()
    for words in (("query", store, "edge(X, Y)"), ("init", store, store.parent / "reach.dl", "-F", store.parent)):
        refused = run(*words)
        assert "error[E0806]: `CURRENT` is missing, though epochs are there" in refused.stderr
        assert "otherwise take the store as a whole from a backup" in refused.stderr


def test_bad_lines_that_name_no_relation_are_told_as_such(store: Path) -> None:
    told = run("apply", store, "-", "--bad-rows", "skip", text="nonsense\nmore\n+edge(8, 9).\n")
    assert "2 bad rows without a relation skipped" in told.stderr


def test_a_batch_is_applied_once(store: Path) -> None:
    again = run("apply", store, store.parent / "u.diff", "--source", "tests", "--batch", "1")
    assert again.exit_code == 0
    assert "epoch 2:" in again.stderr
    assert "was applied before" in again.stderr


@pytest.mark.parametrize("first", ["+edge(5, 6).\n", "+edge(2, 3).\n", "+off().\n", "+rule: .decl new(x: number)\n"])
def test_another_update_under_a_batch_is_refused(store: Path, first: str) -> None:
    (store.parent / "rule.diff").write_text("+rule: .decl off()\n")
    assert run("apply", store, store.parent / "rule.diff").exit_code == 0
    (store.parent / "first.diff").write_text(first)
    (store.parent / "other.diff").write_text("+edge(7, 8).\n")
    under = ("--source", "q", "--batch", "17")
    assert run("apply", store, store.parent / "first.diff", *under).exit_code == 0
    assert "was applied before" in run("apply", store, "-", *under, text=first + "\n").stderr
    with elastalog.open(store=store) as session:
        with pytest.raises(ElastalogError, match="E0932"):
            session.apply({"edge": [(9, 9)]}, source="q", batch=17)
        session.apply({"edge": [(3, 5)]}, source="q", batch=18)
    for more in ((), ("--preview",)):
        refused = run("apply", store, store.parent / "other.diff", *under, *more)
        assert (refused.exit_code, "error[E0932]: the key `17` has" in refused.stderr) == (1, True), refused.output
    assert "was applied before" in run("apply", store, "-", *under[:3], "18", text="+edge(3, 5).\n").stderr
    assert run("query", store, "edge(7, _)").stdout == "no\n"
    assert [line.split()[-1] for line in run("log", store).stdout.splitlines()][1] == "18"
    entries = [json.loads(line)["batch"] for line in run("log", store, "--format", "json").stdout.splitlines()]
    assert entries == [18] + ["17"] * (first != "+edge(2, 3).\n") + [None, "1", None]


def test_an_update_that_is_wrong_changes_nothing(store: Path) -> None:
    (store.parent / "wrong.diff").write_text("+edge(1, two).\n")
    assert run("apply", store, store.parent / "wrong.diff").exit_code == 1
    assert run("query", store, "edge(X, Y)").stdout == "2\t3\n3\t4\n"


def test_query_now_and_then(store: Path) -> None:
    assert run("query", store, "path(2, X)").stdout == "3\n4\n"
    assert run("query", store, "path(1, X)", "--at", "1").stdout == "2\n3\n"
    assert run("query", store, "path(2, 4)").stdout == "yes\n"
    assert run("query", store, "path(4, 2)").stdout == "no\n"
    assert run("query", store, "path(3, X)", "--format", "json").stdout == '{"X": 4}\n'
    assert run("query", store, "nothing(3, X)").exit_code == 1
    assert "E0813" in run("query", store, "path(2, X)", "--at", "9").stderr


def test_log(store: Path) -> None:
    heads, *lines = run("log", store).stdout.splitlines()
    assert heads.split() == ["epoch", "time", "explicit", "changes", "how", "seconds", "source", "batch"]
    assert [line.split()[0] for line in lines] == ["2", "1"]
    for head, cell in (("explicit", "-1 +1"), ("how", "update"), ("source", "tests"), ("batch", "1")):
        assert lines[0][heads.index(head) :].startswith(cell)
    assert lines[0][: heads.index("changes") + len("changes")].endswith(" 6")
    entries = [json.loads(line) for line in run("log", store, "--format", "json", "-n", "1").stdout.splitlines()]
    assert [(entry["epoch"], entry["source"], entry["impact"]) for entry in entries] == [(2, "tests", 6)]
    last, first = run("log", store, "--fact", "path(1, 3)").stdout.splitlines()
    assert (last.split()[0], first.split()[0]) == ("2", "1")
    assert last.endswith("disappeared")
    assert first.endswith("appeared at level 2")
    assert "path: update" in run("log", store, "-v").stdout


def test_a_preview_names_what_has_no_effect(store: Path) -> None:
    told = run("apply", store, "-", "--preview", text="+edge(3, 4).\n-edge(8, 8).\n-path(2, 4).\n+edge(4, 5).\n").stderr
    assert (
        "would change 4 facts, 3 without effect"
        " (edge(3, 4) there already; edge(8, 8) not there; path(2, 4) only derived)" in told
    )


def test_what_a_repair_would_change_is_shown_as_its_hint_says(tmp_path: Path) -> None:
    """Through a shell: facts have quotes."""
    (tmp_path / "reach.dl").write_text(PROGRAM.replace("number", "symbol"))
    (tmp_path / "edge.facts").write_text("".join(f"{a}\t{b}\n" for a, b in pairwise(["a", "O'Neil", *"bcdef"])))
    run("init", tmp_path / "it's", tmp_path / "reach.dl", "-F", tmp_path)
    asked = ("debug", tmp_path / "it's", "--unwanted", 'path("a", "f")', "--reject", 'edge("b", _)')
    told = run(*asked)
    (hint,) = re.findall("to see them all: `(.*)`", told.stdout)
    here = hint.replace("elastalog", f"{sys.executable} -m elastalog", 1)
    shown = subprocess.run(["sh", "-c", here], capture_output=True, text=True, check=True).stdout
    (rejecting,) = re.findall("note: `--reject (.*)` looks for another", told.stderr)
    again = run(*asked, "--reject", *shlex.split(rejecting), "--apply")
    (hint,) = re.findall("to see them all: `elastalog (.*)`", again.stdout)
    done = run(*shlex.split(hint)).stdout
    assert shown.splitlines()[0] != done.splitlines()[0]  # another repair
    for lines in (shown, done):
        assert lines.startswith("-edge(")
        assert '-path("a", "f").' in lines


def test_a_change_in_the_place_of_its_file_is_told_how_it_is_given(store: Path) -> None:
    result = run("apply", store, "+edge(1, 9).")
    told = " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert "this is a change, and no file: echo '+edge(1, 9).' | elastalog apply STORE -" in told


def test_the_log_names_no_internal_relation(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".decl e(x: number)\n.input e\n.decl n(x: number)\n.output n\nn(c) :- c = count : { e(_) }.\n")
    (tmp_path / "e.facts").write_text("1\n2\n")
    run("init", tmp_path / "s", program, "-F", tmp_path)
    (tmp_path / "more.diff").write_text("+e(3).\n")
    run("apply", tmp_path / "s", tmp_path / "more.diff")
    told = run("log", tmp_path / "s", "-v").stdout
    assert "    n: " in told
    assert "(made for negations and aggregates): update" in told
    assert "@" not in told


def test_diff(store: Path) -> None:
    (store.parent / "v.diff").write_text("+edge(2, 4).\n")
    run("apply", store, store.parent / "v.diff")
    assert run("diff", store, 2, 3, "--levels").stdout == "+edge(2, 4).\n~path(2, 4). // level 2, now 1\n"
    assert run("diff", store, 3, 1, "-r", "edge").stdout == "-edge(2, 4).\n-edge(3, 4).\n+edge(1, 2).\n"
    assert run("diff", store, 1, 1).stdout == ""
    assert run("diff", store, 1, 2, "-r", "nothing").exit_code == 1
    for epochs in ((9, 99), (1, 99)):
        told = run("diff", store, *epochs).stderr
        assert f"there is no epoch {epochs[-1] if epochs[0] == 1 else 9}: the store keeps epochs 1 to 3" in told
        assert "is still to come" in told


def test_show_and_explain_accept_a_store(store: Path) -> None:
    assert run("show", store, "edge@1").stdout == "edge(1, 2).\nedge(2, 3).\n"
    assert run("show", store, "edge").stdout == "edge(2, 3).\nedge(3, 4).\n"
    assert "stratum 1: path" in run("show", store, "--stage", "strata").stdout
    explained = run("explain", store, "path(2, 4)")
    assert explained.exit_code == 0, explained.output
    assert "edge(3, 4)" in explained.stdout


def test_verify(store: Path) -> None:
    well = run("verify", store, "--recompute")
    assert (well.exit_code, well.stdout) == (0, "")
    assert "epoch 2, computed anew with sorted joins, has the same facts" in well.stderr
    (file,) = (store / "facts").glob("*-path-1.parquet")
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(data)
    ill = run("verify", store)
    assert ill.exit_code == 1
    assert f"error[E0805]: `{file.name}` is damaged" in ill.stderr
    assert "= help: take the whole store from a copy" in ill.stderr


def test_the_log_of_a_fact_that_has_always_held_says_so(store: Path) -> None:
    told = run("log", store, "--fact", "edge(2, 3)")
    assert (told.stdout, told.stderr) == ("", "note: edge(2, 3) has held since epoch 1, the earliest that is known\n")
    assert "path(9, 9) does not hold, and never did" in run("log", store, "--fact", "path(9, 9)").stderr
    assert run("log", store, "--fact", "edge(1, 2)").stdout.splitlines()[0].endswith("disappeared")


def test_what_is_no_number_is_told_what_is_wanted(store: Path) -> None:
    assert "'x' is not a number: give a whole one from 1 on." in run("undo", store, "x").stderr
    assert "'x' is not a number: give a whole one from 0 to 65535." in run("serve", store, "--port", "x").stderr


def test_export(store: Path, tmp_path: Path) -> None:
    assert run("export", store, "-D", tmp_path / "out").exit_code == 0
    assert sorted((tmp_path / "out" / "path.csv").read_text().splitlines()) == ["2\t3", "2\t4", "3\t4"]
    assert run("export", store, "-D", tmp_path / "old", "--at", "1", "--explicit").exit_code == 0
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["edge.facts"]
    assert run("export", store, "-D", tmp_path / "out", "--format", "parquet", "-r", "path").exit_code == 0
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "out" / "path.parquet").num_rows == 3


def test_export_replaces_files_only_in_the_folder_that_it_is_given(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "path.csv").write_text("keep me")
    found = run("export", store)
    assert (found.exit_code, "E0538" in found.stderr) == (1, True)
    assert (tmp_path / "path.csv").read_text() == "keep me"
    assert not (tmp_path / "edge.csv").exists()  # written before `path.csv`
    assert run("export", store, "-D", ".").exit_code == 0
    assert len((tmp_path / "path.csv").read_text().splitlines()) == 3


def test_what_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    for words in (("query", tmp_path, "a(X)"), ("log", tmp_path), ("diff", tmp_path, 1, 2), ("verify", tmp_path),
                  ("export", tmp_path)):  # fmt: skip
        found = run(*words)
        assert found.exit_code == 1, words
        assert "error[E0801]" in found.stderr


def test_queries_of_programs_and_stores(tmp_path: Path) -> None:
    program = tmp_path / "reach.dl"
    program.write_text(
        '.decl edge(x: number, y: number)\n.input edge\n.decl name(x: number, n: symbol)\nname(1, "7").\n'
        ".decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\npath(x, z) :- edge(x, y), path(y, z).\n"
    )
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n3\t4\n")

    facts = ("-F", str(tmp_path))
    found = run("query", str(program), *facts, "path(?a, X), edge(X, Y)", "--param", "a=1")
    assert (found.exit_code, found.stdout) == (0, "2\t3\n3\t4\n")
    found = run("query", str(program), *facts, "name(X, ?n)", "--param", 'n="7"', "--format", "json")
    assert found.stdout == '{"X": 1}\n'
    assert run("query", str(program), *facts, "path(?a, X)").exit_code == 1
    assert run("query", str(program), *facts, "path(?a, X)", "--param", "a").exit_code == 2
    assert run("query", str(program), *facts, "path(1, X)", "--at", "1").exit_code == 2
    store = str(tmp_path / "store")
    assert run("init", store, str(program), *facts).exit_code == 0
    (tmp_path / "more.diff").write_text("+edge(4, 5).\n-edge(1, 2).\n")
    assert run("apply", store, str(tmp_path / "more.diff")).exit_code == 0
    assert run("query", store, "far(X) :- path(2, X), !edge(2, X)").stdout == "4\n5\n"
    assert run("query", store, "edge(X, _), X < 2", "--at", "1").stdout == "1\n"
    assert "edge(1, 2)" in run("explain", store, "path(1, 2)", "--at", "1").stdout
    assert run("explain", store, "path(1, 2)").exit_code == 1


def test_answers_in_json_are_json_whatever_they_hold(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".type T = L {w: float}\n.type P = [x: float, t: T]\n.decl f(x: float, p: P)\n.input f\n")
    (tmp_path / "f.facts").write_text("nan\t[inf, $L(-inf)]\n-inf\tnil\n")
    found = run("query", program, "-F", tmp_path, "f(X, P)", "--format", "json")
    answers = [json.loads(line, parse_constant=pytest.fail) for line in found.stdout.splitlines()]
    assert answers == [{"X": "nan", "P": ["inf", "$L(-inf)"]}, {"X": "-inf", "P": None}]
    assert run("query", program, "-F", tmp_path, "f(?x, nil)", "--param", "x=-inf").stdout == "yes\n"
    assert run("query", program, "-F", tmp_path, "X = ?x", "--param", "x=1_0").stdout == '"1_0"\n'


@pytest.mark.parametrize("inside", [".", "copy", "facts", "facts/copy", "../store/copy", "../link/copy"])
def test_a_backup_into_the_folder_of_the_store_is_refused(store: Path, inside: str) -> None:
    (store.parent / "link").symlink_to(store)
    before = sorted(store.rglob("*"))
    refused = run("backup", store, store / inside)
    assert refused.exit_code == 1
    assert "error[E0802]" in refused.stderr
    assert "which belongs to the store alone" in refused.stderr
    with elastalog.open(store=store) as session, pytest.raises(elastalog.ElastalogError, match="E0802"):
        session.backup(store / inside)
    assert sorted(store.rglob("*")) == before


def test_an_epoch_is_undone(store: Path) -> None:
    said = run("undo", store, "--preview")
    assert (said.exit_code, "undoing epoch 2: would change 6 facts" in said.stderr) == (0, True), said.output
    assert said.stdout == "-edge(3, 4).\n+edge(1, 2).\n-path(2, 4).\n-path(3, 4).\n+path(1, 2).\n+path(1, 3).\n"
    assert run("query", store, "edge(X, Y)").stdout == "2\t3\n3\t4\n"
    assert "epoch 3: undoing epoch 2: 6 changes" in run("undo", store).stderr
    assert run("query", store, "edge(X, Y)").stdout == "1\t2\n2\t3\n"
    assert "undo of epoch 2" in run("log", store, "-n", "1").stdout
    assert "epoch 3: undoing epoch 2: changes nothing" in run("undo", store, 2).stderr
    assert run("undo", store, 3, "-q", "--show-changes").stdout == run("diff", store, 1, 2).stdout
    assert "an epoch from 2 to 4" in run("undo", store, 1).stderr
    assert "an epoch from 2 to 4" in run("undo", store, 77).stderr


def test_what_was_exported_can_be_read_again(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(
        """.decl one(x: number, y: symbol)
.input one(filename="in/one.csv", rfc4180=true, headers=true)
.decl two(x: number)
.input two(filename="two.jsonl.gz")
.decl three(x: number, y: number)
.input three(delimiter="|")
.decl none(x: number)
.input none
.decl out(x: number)
out(x) :- one(x, _), two(x), three(x, _), !none(x).
"""
    )
    facts = {"one": [(1, 'a "b", c'), (2, "d")], "two": [(1,), (2,)], "three": [(1, 5), (3, 4)], "none": []}
    elastalog.open(program, facts, store=tmp_path / "kept").close()
    assert run("export", tmp_path / "kept", "-D", tmp_path / "facts", "--explicit").exit_code == 0
    assert (tmp_path / "facts" / "in" / "one.csv").read_text().startswith("x,y\n")
    assert (tmp_path / "facts" / "three.facts").read_text() == "1|5\n3|4\n"
    made = run("init", tmp_path / "again", program, "-F", tmp_path / "facts")
    assert made.exit_code == 0, made.output
    for name, rows in {**facts, "out": [(1,)]}.items():
        with elastalog.open(store=tmp_path / "again") as session:
            assert sorted(session[name]) == sorted(rows)


def test_what_no_input_reads_is_said(tmp_path: Path) -> None:
    program = '.decl a(x: number)\n.input a(filename="../f")\n.decl b(x: number)\n.input b(filename="f")\n'
    program += '.decl c(x: number)\n.input c(filename="f")\n.decl d(x: number)\n.input d(IO=updates)\n'
    program += ".decl e(x: number)\ne(5).\n.decl h(x: number)\nh(6).\n"
    facts = {"a": [(1,)], "b": [(2,)], "c": [(3,)], "d": [(4,)], "h": [(7,)]}
    elastalog.open(program, facts, store=tmp_path / "kept").close()
    told = run("export", tmp_path / "kept", "-D", tmp_path / "facts", "--explicit")
    assert {path.name: path.read_text() for path in (tmp_path / "facts").iterdir()} == {
        "a.facts": "1\n", "f": "2\n", "c.facts": "3\n", "d.facts": "4\n", "e.facts": "5\n", "h.facts": "6\n7\n",
    }  # fmt: skip
    assert [f"will not read {tmp_path}/facts/{name}.facts" in told.stderr for name in "abcdeh"] == [
        True, False, True, True, False, True,  # all facts of `e` are in the text
    ]  # fmt: skip


def test_explicit_facts_are_read_again_in_every_form(tmp_path: Path) -> None:
    text = "".join(
        f".decl {name}(x: symbol, y: number)\n.input {name}({said})\n"
        for name, said in {
            "j": "IO=json", "l": 'filename="l.jsonl"', "s": 'IO=sqlite, dbname="both.db"',
            "t": 'IO=sqlite, dbname="both.db"', "g": 'filename="g.csv.gz", rfc4180=true',
        }.items()
    )  # fmt: skip
    facts = {name: [(f'a, "{name}"', 1), ("tab\there", 2)] for name in "jlstg"}
    elastalog.open(text, facts, store=tmp_path / "kept").close()
    told = run("export", tmp_path / "kept", "-D", tmp_path / "facts", "--explicit")
    assert (told.exit_code, "warning" in told.stderr) == (0, False), told.stderr
    with elastalog.open(text, tmp_path / "facts") as again:
        assert {name: sorted(again[name]) for name in facts} == facts


def test_export_writes_what_run_writes(tmp_path: Path) -> None:
    text = ".decl note(k: symbol, t: symbol)\n.output note(rfc4180=true, headers=true)\n"
    text += 'note("a", "x, y").\nnote("b", "tab\\there").\n.decl n(x: number)\nn(1).\n'
    (tmp_path / "p.dl").write_text(text)
    elastalog.open(text, store=tmp_path / "kept").close()
    run("run", tmp_path / "p.dl", "-D", tmp_path / "run")
    run("export", tmp_path / "kept", "-D", tmp_path / "export")
    assert (tmp_path / "export" / "note.csv").read_text() == (tmp_path / "run" / "note.csv").read_text()
    assert (tmp_path / "export" / "n.csv").read_text() == "1\n"


def test_names_are_checked_before_anything_is_written(store: Path, tmp_path: Path) -> None:
    refused = run("export", store, "-D", tmp_path / "out", "-r", "edge", "-r", "egde")
    assert (refused.exit_code, (tmp_path / "out").exists()) == (1, False)
    assert "did you mean `edge`?" in refused.stderr


def test_what_became_explicit_between_epochs_is_a_diff_file(store: Path, tmp_path: Path) -> None:
    assert run("diff", store, 1, "--explicit").stdout == "-edge(1, 2).\n+edge(3, 4).\n"
    back = tmp_path / "back.diff"
    back.write_text(run("diff", store, 2, 1, "--explicit").stdout)
    assert back.read_text() == "-edge(3, 4).\n+edge(1, 2).\n"
    assert run("apply", store, back).exit_code == 0
    assert run("diff", store, 1, 3).stdout == ""
    assert run("diff", store, 1, 3, "--explicit", "-r", "path").stdout == ""


def test_answers_as_csv(store: Path) -> None:
    assert run("query", store, "path(2, X)", "--format", "csv").stdout == "X\n3\n4\n"
    assert run("query", store, "path(2, 3)", "--format", "csv").stdout == "yes\n"


def test_texts_in_csv_are_quoted_where_they_must(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text('.decl t(x: symbol, y: float)\nt("a, \\"b\\"", 1.5).\nt("c", 2).\n')
    found = run("query", tmp_path / "p.dl", "t(X, Y)", "-F", tmp_path, "--format", "csv")
    assert found.stdout == 'X,Y\n"a, ""b""",1.5\nc,2.0\n'


def test_what_was_probably_meant_by_a_path(store: Path) -> None:
    for words in (("query", f"{store}x", "path(X, Y)"), ("log", f"{store}x"), ("show", f"{store}x", "path@1")):
        assert "did you mean `store`?" in run(*words).stderr


def test_a_service_is_no_place_of_files() -> None:
    told = run("query", "http://127.0.0.1:9", "path(X, Y)")
    assert (told.exit_code, 'elastalog.connect("http://127.0.0.1:9")' in told.stderr) == (1, True)


def test_a_stream_tells_of_updates_without_effect(store: Path) -> None:
    folder = store.parent / "updates"
    folder.mkdir()
    words = ("stream", store.parent / "reach.dl", "-F", store.parent, "--updates", folder)
    assert f"there are no updates in {folder}" in run(*words).stderr
    (folder / "1.diff").write_text("+edge(1, 2).\n")
    (folder / "2.diff").write_text("+edge(7, 8).\n")
    assert run(*words).stderr == "1 of 2 updates changed nothing; `-v` says why\n"
    assert "epoch 1: 1.diff: 0 changes, 1 without effect (edge(1, 2) there already)" in run(*words, "-v").stderr


@pytest.mark.parametrize("out", [".", "updates"])
def test_a_stream_replaces_no_file_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "updates").mkdir()
    for file in ("edge.csv", "updates/edge.csv"):
        Path(file).write_text("op\tx\ty\n+\t1\t2\n" if "updates" in file else "1\t2\n")
    (tmp_path / "p.dl").write_text(
        '.decl edge(x: number, y: number)\n.input edge(filename="edge.csv")\n.output edge(headers=true)\n'
    )
    before = Path(out, "edge.csv").read_bytes()
    found = run("stream", "p.dl", "--updates", "updates", "-D", out)
    reads = "`.input edge`" if out == "." else "`stream`"
    assert (found.exit_code, f"E0538]: `edge.csv`, which {reads} reads, would be" in found.stderr) == (1, True)
    assert Path(out, "edge.csv").read_bytes() == before
    assert run("stream", "p.dl", "--updates", "updates", "-D", "out").exit_code == 0
    assert Path("out", "edge.csv").read_text() == "x\ty\n1\t2\n"


def test_epochs_are_given_by_times(store: Path) -> None:
    first, last = (str(entry.time) for entry in elastalog.open(store=elastalog.Store(store, read_only=True)).log())
    assert run("query", store, "path(1, X)", "--at", first).stdout == "2\n3\n"
    assert run("query", store, "path(1, X)", "--at", "2999-01-01").stdout == ""
    assert run("show", store, f"edge@{last}").stdout == "edge(2, 3).\nedge(3, 4).\n"
    assert run("diff", store, first, last).stdout == run("diff", store, 1, 2).stdout
    assert "there was no epoch at 1999-01-01" in run("explain", store, "path(2, 3)", "--at", "1999-01-01").stderr
    told = run("query", store, "path(1, X)", "--at", "yesterday")
    assert (told.exit_code, "a time such as 2026-11-18T09:30" in told.stderr) == (2, True)


def test_sessions_are_asked_for_times(store: Path) -> None:
    with elastalog.open(store=store) as db:
        times = [entry.time for entry in db.log()]
        for moment in (times[0], str(times[0]), times[0].isoformat()):
            assert db.at(moment).epoch == 1
        assert db.at(times[1].date() + timedelta(1)).epoch == 2
        for wrong in ("1", "yesterday", None):
            with pytest.raises(TypeError, match="an epoch is a number"):
                db.at(wrong)  # type: ignore[arg-type]
