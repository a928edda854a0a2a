"""What a program reads and writes changes with it: `.input`, `.output` and `.printsize` come and go like rules."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog.session import Session
from tests.commands import run
from tests.refusals import refused

BEFORE = ".decl q(x: symbol)\n.input q(IO=updates)\n.decl kept(x: symbol)\n.input kept\n"
AFTER = '.decl p(x: symbol)\n.input p\n.decl q(x: symbol)\nq(x) :- p(x).\n.output q(filename="a.csv", headers=true)\n'
OUTPUT = '.output q(filename="a.csv", headers="true")'


def directives(db: Session) -> list[str]:
    return sorted(line for line in db.program.tree.source.text.splitlines() if line.startswith((".in", ".out", ".pri")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with elastalog.open(BEFORE, {}, store=tmp_path / "store"):
        return tmp_path / "store"


def test_an_upgrade_carries_directives(path: Path) -> None:
    before, after = [".input kept", ".input q(IO=updates)"], [".input kept", ".input p", OUTPUT]
    with elastalog.open(store=path) as db:
        db.upgrade(AFTER, preview=True)
        assert (db.epoch, directives(db)) == (1, before)
        db.upgrade(AFTER)
        assert (db.epoch, directives(db)) == (2, after)  # of a relation that is not declared any more, they stay
        entry = db.log()[-1]
        assert entry.removed_rules == ('.input q(IO="updates")',)
        assert entry.added_rules == ("q(x) :- p(x).", ".input p", OUTPUT)
    with elastalog.open(AFTER, store=path) as db:
        db.upgrade(AFTER)
        assert (db.epoch, directives(db)) == (2, after)
        found = db.diff(1, 2)
        assert (found.added_rules, found.removed_rules) == (entry.added_rules, entry.removed_rules)
        assert found.added_declarations == (".decl p(x: symbol)",)
        assert (directives(db.at(1)), db.verify().is_exact) == (before, True)
        db.apply(undo=2)
        assert directives(db) == [".input kept", '.input q(IO="updates")']
        db.apply(undo=3)
    with elastalog.open(store=path) as db:
        assert (db.epoch, directives(db)) == (4, after)


def test_a_store_opens_with_a_program_of_other_directives_and_goes_over_to_them(path: Path) -> None:
    other = BEFORE + ".printsize q\n"
    with elastalog.open(other, store=path) as db:
        assert ".printsize q" not in directives(db)
        db.upgrade(other)
        assert (db.epoch, ".printsize q" in directives(db)) == (2, True)


def test_commands_tell_of_directives(path: Path, tmp_path: Path) -> None:
    (tmp_path / "after.dl").write_text(AFTER)
    signed = ['-rule: .input q(IO="updates")', "+rule: .decl p(x: symbol)", "+rule: .input p", f"+rule: {OUTPUT}"]
    for option in (["--preview"], []):
        told = run("upgrade", path, tmp_path / "after.dl", *option).stderr.splitlines()
        assert told[:-1] == [*signed, "+rule: q(x) :- p(x)."]
    assert run("upgrade", path, tmp_path / "after.dl").stderr == "epoch 2: changes nothing\n"
    assert {*signed} <= {*run("diff", path, 1, 2).stdout.splitlines()}
    assert "        +rule: .input p" in run("log", path).stdout.splitlines()
    (tmp_path / "back.diff").write_text(run("diff", path, 2, 1).stdout)
    assert run("apply", path, "-", text='+p("a").\n').exit_code == 0
    told = run("export", path, "-D", tmp_path / "facts", "--explicit")
    assert "will not read" not in told.stderr
    assert run("apply", path, tmp_path / "back.diff").exit_code == 0
    assert ".input p" not in run("show", path, "--stage", "text").stdout
    (tmp_path / "other.dl").write_text(AFTER.replace("a.csv", "b.csv"))
    run("upgrade", path, tmp_path / "after.dl")
    told = run("upgrade", path, tmp_path / "other.dl").stderr.splitlines()
    assert told[:2] == [f"-rule: {OUTPUT}", f"+rule: {OUTPUT.replace('a.csv', 'b.csv')}"]


def test_of_those_written_in_one_place_the_others_stay() -> None:
    text = '.decl a, b(x: number) output brie // both\n.input a, b(filename="b.csv") // two\n.printsize *\n'
    with elastalog.open(text, {}) as db:
        db.change_rules(removed=[".output a", '.input a(filename="b.csv")', ".printsize *"])
        assert db.program.tree.source.text == (
            '.decl a, b(x: number)  brie // both\n // two\n.output b\n.input b(filename="b.csv")\n'
        )
        db.change_rules(".output b, a // again\n")
        assert db.program.tree.source.text.splitlines()[4:] == ["             // again", ".output a"]
        assert db.log()[-1].added_rules == (".output a",)
        db.change_rules(".output a", ".output a")
        assert db.epoch == 3


def test_directives_of_instances() -> None:
    text = ".comp C { .decl a(x: number)\n.output a }\n.init c = C\n.init d = C\n"
    with elastalog.open(text, {}) as db:
        db.upgrade(text.replace(".output a", ".printsize a").replace(".init d = C\n", ""))
        assert directives(db) == [".output d.a", ".printsize c.a"]


def test_debugging_is_about_rules_alone() -> None:
    text = ".decl p, q(x: number)\n.output q\nq(x) :- p(x).\n"
    with elastalog.open(text, {"p": [(1,)]}) as db:
        db.change_rules("q(x + 1) :- p(x).", [".output q", 1])
        assert db.suggest(missing=["q(1)"]).elements == [("-", "q(x) :- p(x).")]
        found = db.suggest(unwanted=["q(2)"])
        assert (found.rules_to_remove, found.replaced) == (("q(x + 1) :- p(x).",), ("q(x) :- p(x).",))
        db.change_rules(".output p")
        assert db.blame("q(2)").epoch == 2
        assert [str(one) for one in db.localise(missing=["q(1)"], epochs=(1, 3)).elements] == ["-q(x) :- p(x)."]


@pytest.mark.parametrize("text", [".output p", ".input q", ".limitsize q(n=1)", ".decl q(x: number)", ".outputs q"])
def test_what_cannot_be_removed(text: str) -> None:
    with elastalog.open(".decl p, q(x: number)\n.output q\n.limitsize q(n=1)\n", {}) as db, refused("E0616"):
        db.change_rules(removed=text)


def test_a_limit_comes_only_with_its_relation() -> None:
    """What there is already may be more than it allows."""
    with elastalog.open(".decl p(x: number)", {"p": [(1,), (2,)]}) as db:
        with refused("E0616", message="`.limitsize` cannot be added to `p`, which has its facts already"):
            db.change_rules(added=".limitsize p(n=1)")
        assert db.change_rules(added=".decl q(x: number)\n.limitsize q(n=5)\nq(x) :- p(x).").impact == 2
        assert db.verify()
