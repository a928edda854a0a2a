"""The layout of programs: nothing is lost, nothing changes its meaning, and a second time changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from elastalog.cli.main import cli
from elastalog.diagnostics.source import Source
from elastalog.syntax.format import format_program
from elastalog.syntax.tokens import tokenize
from tests.commands import run

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted([*ROOT.glob("tests/programs/*/program.dl"), *ROOT.glob("examples/**/*.dl")])
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def formatted(text: str) -> str:
    found, faults = format_program(Source("test.dl", text))
    assert faults == ()
    return found


def words(text: str) -> list[tuple[str, str]]:
    return [(kind, word) for kind, word, _ in tokenize(Source("test.dl", text))[0]]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_words_and_comments_stay_and_a_second_time_changes_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    once = formatted(text)
    assert words(once) == words(text)
    assert [c.rstrip() for c in COMMENT.findall(once)] == [c.rstrip() for c in COMMENT.findall(text)]
    assert formatted(once) == once
    assert all(line == line.rstrip() for line in once.split("\n"))


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (".decl  p( x:number,y :symbol )btree", ".decl p(x: number, y: symbol) btree"),
        (".type T=A|B", ".type T = A | B"),
        (".type T<:number", ".type T <: number"),
        ('.input e(IO = file,filename="a")', '.input e(IO=file, filename="a")'),
        ("p(x,-3+y*-2):-q( x ),! r(x),x<-1.", "p(x, -3 + y * -2) :- q(x), !r(x), x < -1."),
        ("p(n):-n=count:{q(_)},m=sum x:{q(x)}.", "p(n) :- n = count : { q(_) }, m = sum x : { q(x) }."),
        ("p(x):-(a(x);b(x)),x!=0x1f.", "p(x) :- (a(x); b(x)), x != 0x1f."),
        ("p(x) :- i . q(x).", None),
        ("a.p(x):-a.b.q(x).", "a.p(x) :- a.b.q(x)."),
        ("p(x band 1,min( x,2 )):-q(x).", "p(x band 1, min(x, 2)) :- q(x)."),
        ("p(1).   p(2).", "p(1). p(2)."),
        (".decl p(x: number) p(1).", ".decl p(x: number)\np(1)."),
        ("p(x):-q(x),r(x). .plan 0:(2 , 1)", "p(x) :- q(x), r(x).\n.plan 0:(2, 1)"),
        (".comp C<T ,U>:B<T>{.decl p(x:T)}", ".comp C<T, U> : B<T> {\n    .decl p(x: T)\n}"),
        ('@[doc="x"]  @[ key(1) ] .decl p(@[a] x:number)', '@[doc = "x"] @[key(1)]\n.decl p(@[a] x: number)'),
        (".comp C{ @![doc] p(1). }", ".comp C {\n    @![doc]\n    p(1).\n}"),
        ("p(x):- @![doc] q(x). .strict", "p(x) :- @![doc] q(x).\n.strict"),
        ('p(n):-n=@@f x:"a",{q(x)}.', 'p(n) :- n = @@f x : "a", { q(x) }.'),
        (".init i=C<number>", ".init i = C<number>"),
        ("p(x) :-\n q(x),\n      r(x).", "p(x) :-\n    q(x),\n    r(x)."),
        ("p(x) :- (\nq(x)\n;r(x)\n).", "p(x) :- (\n        q(x)\n        ; r(x)\n    )."),
        ("// a\n\n\n\np(1).// b\n/* c */ p(2).", "// a\n\np(1).  // b\n/* c */\np(2)."),
        ("#define A 1\n  #ifdef A\np( A ).\n#endif", "#define A 1\n#ifdef A\np(A).\n#endif"),
        ("", None),
    ],
)
def test_layouts(text: str, layout: str | None) -> None:
    if layout is not None:
        assert formatted(text) == layout + "\n"
        assert formatted(layout + "\n") == layout + "\n"
    else:
        assert format_program(Source("test.dl", text))[0] in ("", text)


def test_the_command_prints_checks_and_writes(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p( 1 ).")
    runner = CliRunner()
    assert runner.invoke(cli, ["format", str(program)]).output == "p(1).\n"
    assert runner.invoke(cli, ["format", "-"], input="p( 1 ).").output == "p(1).\n"
    checked = runner.invoke(cli, ["format", "--check", str(program)])
    assert (checked.exit_code, checked.output) == (1, f"would change: {program}\n")
    assert runner.invoke(cli, ["format", "--write", str(program)]).exit_code == 0
    assert program.read_text() == "p(1).\n"
    assert runner.invoke(cli, ["format", "--check", str(program)]).exit_code == 0


def test_a_text_with_errors_is_refused_and_left_alone(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p( 1 .")
    result = run("format", "--write", program)
    assert result.exit_code == 1
    assert "E0110" in result.output
    assert program.read_text() == "p( 1 ."


def test_included_files_stay() -> None:
    text = '.once\n  .include "a.dl"\n.decl  p(x:number)\np(1).\n.include "b.dl"\n'
    formatted, faults = format_program(Source("x.dl", text))
    assert faults == ()
    assert formatted == '.once\n.include "a.dl"\n.decl p(x: number)\np(1).\n.include "b.dl"\n'
    assert format_program(Source("x.dl", formatted)) == (formatted, ())


def test_a_fault_behind_an_included_file_leaves_the_text_as_it_is() -> None:
    text = '.include "a.dl"\np(1'
    formatted, faults = format_program(Source("x.dl", text))
    assert formatted == text
    assert faults
