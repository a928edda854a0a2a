"""Answers show in a plain interpreter what `print` shows; mistakes of a first hour say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import elastalog
from elastalog.cli.main import cli

PROGRAM = """
.decl user(name: symbol, group: symbol)
.decl may(name: symbol, document: symbol)
may(n, "keys") :- user(n, "admins").
"""


def test_answers_show_what_they_say() -> None:
    with elastalog.open(PROGRAM, {"user": [("ann", "admins")]}) as db:
        db.apply({"user": [("eve", "admins")]}, source="feed")
        assert repr(list(db.uses('user("eve", "admins")'))) == '[may("eve", "keys")]'
        first, second = db.log()
        assert repr(second).startswith("epoch 2, 2")
        assert " by feed: -0 +1 given, 2 changed, " in repr(second)
        assert "\n" not in repr(first)
        shown = repr(db.statistics())
        assert shown.startswith("1 rules, 2 relations, ")
        assert "  user: 2 facts, " in shown
        assert 'may(n, "keys") :- user(n, "admins").' in shown


def test_a_question_about_an_unknown_relation_lists_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    found = CliRunner().invoke(cli, ["query", str(tmp_path / "p.dl"), 'secret("eve", X)'])
    assert found.exit_code == 1
    assert "help: the program declares: user, may" in found.output


def test_a_file_with_a_header_that_half_fits_is_told_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("name,grp\nann,admins\n")
    (tmp_path / "p.dl").write_text(PROGRAM + '.input user(filename="users.csv")\n.output may\n')
    found = CliRunner().invoke(cli, ["run", str(tmp_path / "p.dl"), "-F", str(tmp_path), "-D", str(tmp_path)])
    assert "`.input user(rfc4180=true, headers=true)`" in found.output
    (tmp_path / "p.dl").write_text(PROGRAM + '.input user(filename="users.csv", rfc4180=true, headers=true)\n')
    with pytest.raises(elastalog.ElastalogError, match="rename column `grp`, or the attribute"):
        elastalog.open(tmp_path / "p.dl")


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        (".decl p(x: int)\np(1).", "write `number`, which is its name here"),
        (".decl p(x: String)\n", "write `symbol`, which is its name here"),
        (".decl p(x: place)\n", "declare it, for example `.type place <: symbol`"),
        ('p("a").', "a text of one line is read by `Program.parse(text)`"),
        ("prog.dl", "check the path, relative to the current folder"),
    ],
)
def test_slips_of_a_first_program(program: str, advice: str) -> None:
    with pytest.raises(elastalog.ElastalogError) as caught:
        elastalog.open(program)
    assert caught.value.diagnostics[0].help == advice


def test_members_that_one_expects_say_what_to_write() -> None:
    with elastalog.open(PROGRAM, facts={}) as db, pytest.raises(AttributeError, match=r"db\.apply"):
        db.insert("user", [("a", "b")])  # type: ignore[attr-defined]


def test_the_shell_lists_epochs(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    script = 'insert user("eve", "admins"); commit; log'
    found = CliRunner().invoke(cli, ["-q", "shell", str(tmp_path / "p.dl")], input=script)
    assert "\nepoch 2, 2" in found.output
    assert "-0 +1 given, 2 changed" in found.output


def test_a_repair_is_applied_to_a_store(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with elastalog.open(PROGRAM, {"user": [("ann", "admins")]}, store=store) as db:
        db.apply({"user": [("eve", "admins")]})
    asked = ["debug", store, "--unwanted", 'may("eve", "keys")']
    assert CliRunner().invoke(cli, [*asked, "--apply", "--localise"]).exit_code == 2
    found = CliRunner().invoke(cli, [*asked, "--apply"])
    assert found.exit_code == 0, found.output
    assert 'delete user("eve", "admins")' in found.output
    assert "epoch 3: 2 changes" in found.output
    with elastalog.open(store=elastalog.Store(store, read_only=True)) as db:
        assert set(db["may"]) == {("ann", "keys")}
