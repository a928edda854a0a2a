"""Every line of the page for those who come from Soufflé is true: what it calls the same or different is evaluated and
gives what is written down here, by hand; what it calls refused or not there yet is an error with the code it names."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program
from tests.commands import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "coming-from-souffle.md"
DECLARED = (
    ".decl e(x: number, y: number)\n.decl s(t: symbol)\n.decl p(x: number)\n.decl f(x: float)\n.decl u(x: unsigned)\n"
)
GIVEN: dict[str, Any] = {"e": [(1, 2), (2, 1), (3, 3)], "s": [("a",), ("abc",)]}
ROW = re.compile(r"^\| (?P<code>`.*`(?: … `[^`]*`)?) \| (?P<here>same|different|not yet) \|(?P<remark>.*)\|$")

# What each line gives with the facts above, by the first words of its code: relation and facts, or for those that
# speak of files what is read and what is written (see `FILES`).
MEANINGS: dict[str, dict[str, set[Any]]] = {
    "#define ONE 1": {"p": {1}},
    "#ifndef DEBUG": {"p": {1}},
    '#include "rules.dl"': {"p": {7}},
    '.include "rules.dl"': {"p": {7}},
    ".once": {"p": set()},
    "#line 12": {"p": set()},
    "p(1). // comment": {"p": {1}},
    "p(RAM_DOMAIN_SIZE)": {"p": {64}},
    "p(n) :- n = min n": {"p": {2}},
    "p(s) :- e(x, y), s = sum y": {"p": {2, 1, 3}},
    "p(/* comment */ 1).": {"p": {1}},
    "p(0x1f)": {"p": {31, 3, -3}},
    "u(3u).": {"u": {3}},
    "f(1.5).": {"f": {1.5, 0.002, 1e9}},
    "p(192.168.0.1)": {"p": {3232235521}},
    's("a\\tb': {"s": {"a", "abc", 'a\tb"c'}},
    "p(?x)": {"p": {1, 2, 3}},
    "p(__LINE__)": {"p": {6}},
    "/// The first.": {"p": {1}},
    "p(x) :- e(x, y), e(y, x). .strict": {"p": {1, 2, 3}},
    ".comp A { .decl r(x: number) } .comp B { } .comp C": {"c.r": {1}},
    ".functor g(so_far": {"p": {6}},
    ".type Pair = [x: number, y: number] .functor": {"r": {(2, 1), (1, 2), (3, 3)}},
    ".decl a, b": {"a": {1}, "b": {2}},
    ".decl r(x: number) btree": {"r": {1}},
    ".decl r(x: number) output": {"r": {1}},
    ".decl r(x: number) magic": {"p": {1}},
    ".decl r(x: number) no_inline": {"r": {1}},
    '.pragma "magic-transform"': {"p": {2}},
    ".decl r(x: number, y: number) inline": {"p": {2, 3, 4}},
    ".type T <: number": {"p": {1}},
    ".type T = number": {"r": {1, 2, 3}},
    ".type A <: symbol .type B <: symbol .type C": {"c": {"x"}},
    ".number_type T": {"r": {1}},
    '.pragma "provenance"': {"p": set()},
    "p(x) :- e(x, y), e(y, x). .plan": {"p": {1, 2, 3}},
    ".limitsize p": {"p": set()},
    ".comp C {": {"c.r": {1}},
    ".comp C<T>": {"c.r": {"a"}},
    ".comp A { .decl r(x: number) } .comp B": {"b.r": {1}},
    ".comp A { .decl r(x: number) overridable": {"b.r": {2}},
    ".comp A { .comp B": {"a.b.r": {1}},
    ".comp A { .decl r(x: number) .output": {"a.r": {1}},
    ".decl q(x: number) .comp Case": {"q": {1}},
    ".comp A { .type T": {"q": {"$a.One"}},
    "p(x), p(y)": {"p": {1, 2, 3}},
    "p(x) :- e(x, _) ;": {"p": {1, 2, 3}},
    "p(x) :- (e(x, _) ;": {"p": {1, 2}},
    "p(x) :- e(x, y), !e": {"p": set()},
    "p(x) :- e(x, y), !(": {"p": {2, 3}},
    "s(t) :- s(t), !match": {"s": {"a", "abc"}},
    "p(1) :- true": {"p": {1}},
    "p(x) :- e(x, y), x < y": {"p": {1}},
    "p(n) :- n = count": {"p": {3}},
    "p(x) :- m = min": {"p": {2}},
    "p(n) :- e(x, _), n = count": {"p": {0}},
    "p(3). p(n) :- p(x), n = count": {"p": {0, 1, 2, 3}},
    "p(n) :- n = sum": {"p": {6}},
    "p(1 + max": {"p": {3}},
    "p(x + 1)": {"p": {2, 3, 4}},
    "p(x / y)": {"p": {0, 2, 1}},
    "p(x ^ 2)": {"p": {1, 4, 9}},
    "p(x band 1)": {"p": {0, 1}},
    "p(min(": {"p": {1, 3}},
    "s(cat(": {"s": {"a", "abc", "aab"}},
    's("a" + t)': {"s": {"a", "abc", "aa", "aaa"}},
    "s(substr(": {"s": {"a", "abc"}},
    "p(to_number(": {"p": {16}},
    "s(to_string(": {"s": {"a", "abc", "1.5"}},
    "p(range(": {"p": {0, 1, 2, 3, 4}},
    "p(1) :- s(a), s(b), ord": {"p": {1}},
    "p(as(": {"p": {1, 2, 3}},
    ".type Pair": {"r": {(1, 2), None}},
    ".type Shape": {"r": {"$Circle(1)", "$Dot"}},
    ".functor g": {"p": {11, 12, 13}},
    "p(autoinc())": {"p": {0, 1, 2, 3, 4, 5}},
    ".decl r(x: number, y: number) eqrel": {"r": {(1, 1), (1, 2), (2, 1), (2, 2)}},
    ".decl r(x: number, y: number) choice-domain": {"r": {(1, 2), (2, 1), (3, 3)}},
    "p(1). p(2). p(_) <=": {"p": {1}},
    "p(1). p(2). .decl q": {"p": {1}},
}

FACTS = 'e(1, 2).\np(1).\ns("a").\n'
# What is read (by name, or `-` for standard input), what the program adds, and what is written and printed then.
FILES: dict[str, tuple[dict[str, str], str, dict[str, str], str]] = {
    '.input e(filename="e.csv"': ({"e.csv": "x,y\n1,2\n"}, ".output e", {"e.csv": "1\t2\n"}, ""),
    ".input e(columns": ({"e.facts": "1\t2\n"}, ".output e", {"e.csv": "2\t1\n"}, ""),
    '.input e(filename="a.facts")': (
        {"a.facts": "1\t2\n", "b.facts": "3\t4\n"}, ".output e", {"e.csv": "1\t2\n3\t4\n"}, "",
    ),
    '.input e(filename="a", filename="b")': ({"b": "3\t4\n"}, ".output e", {"e.csv": "3\t4\n"}, ""),
    ".output p, s": ({}, FACTS, {"p.csv": "1\n", "s.csv": "a\n"}, ""),
    ".output s": ({}, 's("a\\tb").', {"s.csv": "a\tb\n"}, ""),
    ".output *": ({}, FACTS, {"e.csv": "1\t2\n", "p.csv": "1\n", "s.csv": "a\n", "f.csv": "", "u.csv": ""}, ""),
    ".output p(IO=stdout)": ({}, FACTS, {}, "---------------\np\n===============\n1\n===============\n"),
    ".output p(IO=stdout) .output p": (
        {}, FACTS, {"p.csv": "1\n", "q.txt": "1\n"}, "---------------\np\n===============\n1\n===============\n",
    ),
    ".input e(IO=stdin)": ({"-": "1\t2\n"}, ".output e", {"e.csv": "1\t2\n"}, ""),
    ".output p(IO=sqlite": ({}, FACTS, {"out.db": "p: [(1,)]"}, ""),
    ".input e(IO=sqlite": ({"in.db": "edges"}, ".output e", {"e.csv": "1\t2\n"}, ""),
    ".output p(IO=jsonfile": ({}, FACTS, {"p.json": '[{"x": 1}]'}, ""),
    ".printsize p": ({}, FACTS, {}, "p\t1\n"),
    ".decl a(x: number) .input a": ({}, "", {"p.csv": "1\n"}, ""),
}  # fmt: skip


def g(first: Any, *more: int) -> Any:
    """The functor `g` of some lines: of two numbers the sum, of a pair the same the other way round."""
    return first + more[0] if more else first[::-1] if isinstance(first, tuple) else first + 10


def rows() -> list[tuple[str, str, str]]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if row := ROW.match(line):
            code = "\n".join(re.findall(r"`([^`]*)`", row["code"])).replace("\\|", "|")
            found.append((code, row["here"], row["remark"].strip()))
    return found


def is_refused(here: str, remark: str) -> bool:
    return here == "not yet" or remark.startswith("refused")


ACCEPTED = [code for code, here, remark in rows() if not is_refused(here, remark)]


def meaning_of(code: str, table: dict[str, Any]) -> Any:
    """What the longest beginning of the code that the table knows stands for."""
    known = [start for start in table if code.startswith(start)]
    return table[max(known, key=len)] if known else None


def test_every_line_has_a_meaning_and_every_meaning_a_line() -> None:
    assert len(rows()) > 85
    assert [code for code in ACCEPTED if meaning_of(code, {**MEANINGS, **FILES}) is None] == []
    assert [s for s in {**MEANINGS, **FILES} if not any(code.startswith(s) for code in ACCEPTED)] == []


@pytest.mark.parametrize("code", [code for code in ACCEPTED if meaning_of(code, FILES) is None], ids=lambda c: c[:50])
def test_the_line_means_what_is_written_down(code: str, tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text("p(7).\n")
    (tmp_path / "program.dl").write_text(f"{DECLARED}{code}\n")
    program = Program.load(tmp_path / "program.dl")
    with elastalog.open(program, facts=GIVEN, functors={"g": g}) as db:
        for name, wanted in meaning_of(code, MEANINGS).items():
            found = [row[0] if len(row) == 1 else row for row in db[name]]
            assert {str(value) if isinstance(value, elastalog.Branch) else value for value in found} == wanted


@pytest.mark.parametrize(
    "code", [code for code in ACCEPTED if meaning_of(code, FILES) is not None], ids=lambda c: c[:50]
)
def test_the_line_reads_and_writes_what_is_written_down(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, more, written, printed = meaning_of(code, FILES)
    monkeypatch.chdir(tmp_path)
    Path("facts").mkdir()
    for name, text in given.items():
        if name.endswith(".db"):
            with sqlite3.connect(f"facts/{name}") as database:
                database.execute(f"create table {text} (x, y)")
                database.execute(f"insert into {text} values (1, 2)")
        elif name != "-":
            Path("facts", name).write_text(text)
    Path("program.dl").write_text(f"{DECLARED}{code}\n{more}\n")
    arguments = ["run", "program.dl", "-F", "facts", "-D", "out", "-w"]
    result = run(*arguments, text=given.get("-"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, printed, "")
    assert {file.name: content(file) for file in sorted(Path("out").glob("*"))} == written


def content(file: Path) -> str:
    if file.suffix == ".db":
        with sqlite3.connect(file) as database:
            return f"p: {database.execute('select * from p').fetchall()}"
    text = file.read_text()
    return json.dumps(json.loads(text)) if file.suffix == ".json" else text


REFUSED = [(code, remark) for code, here, remark in rows() if is_refused(here, remark)]


@pytest.mark.parametrize(("code", "remark"), REFUSED, ids=lambda value: value[:50])
def test_the_line_is_refused_with_the_code_it_names(code: str, remark: str, tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text(f"{DECLARED}{code}\n")
    with pytest.raises(ElastalogError) as raised:
        Program.load(tmp_path / "program.dl")
    named = re.findall(r"E\d{4}", remark)
    assert named
    assert set(named) <= {found.code for found in raised.value.diagnostics}
