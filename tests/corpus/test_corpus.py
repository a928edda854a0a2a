"""The tool on a made-up folder of programs. Its judge is any command that takes Soufflé's arguments: here none, so that
only ours runs, or a script in its place; the real one is asked where `make corpus` is."""

from __future__ import annotations

import json
import stat
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from elastalog.analysis.program import CheckedProgram
from elastalog.program import Program
from elastalog.session import Session
from tests.corpus import functors, updating
from tests.corpus.__main__ import main
from tests.corpus.expected import FOLDERS
from tests.corpus.facts import Values, given_folder, inputs
from tests.corpus.finding import Found, programs
from tests.corpus.judging import Judge, reason_of
from tests.corpus.reducing import minimised
from tests.corpus.running import apart, differing, execute
from tests.corpus.updating import Tell, judge, random_updates
from tests.engine.judging import Facts
from tests.generators.updates import Update

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

REACH = """
#include "edges.dl"
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    folder = tmp_path / "clones" / "someone+graphs"
    (folder / "logic").mkdir(parents=True)
    (folder / "edges.dl").write_text(".decl edge(x: number, y: number)\n.input edge\n")
    (folder / "logic" / "reach.dl").write_text(REACH)
    (folder / "logic" / "again.dl").write_text(REACH)
    (folder / "wrong.dl").write_text(".decl p(x: number)\np(x) :- q(x).\n")
    return tmp_path / "clones"


def run(clones: Path, *options: str) -> tuple[int, dict[str, Any]]:
    table = clones.parent / "table.json"
    code = main([str(clones), "--results", str(table), *options])
    return code, json.loads(table.read_text())


def judging(folder: Path, script: str) -> str:
    """A command in the place of Soufflé: a script that knows `facts` and `out`, the folders that it is given."""
    path = folder / "judge"
    take = "import pathlib, sys\nif '-F' not in sys.argv: sys.exit(0)\n"
    take += "facts, out = (pathlib.Path(sys.argv[sys.argv.index(o) + 1]) for o in ('-F', '-D'))\n"
    path.write_text(f"#!{sys.executable}\n{take}{script}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


CLOSURE = """
edges = {tuple(line.split("\\t")) for line in (facts / "edge.facts").read_text().splitlines()}
path = set(edges)
while more := {(x, z) for x, y in path for w, z in edges if y == w} - path:
    path |= more
for name, rows in (("edge", edges), ("path", path)):
    (out / f"{name}.all").write_text("".join(f"{x}\\t{y}\\n" for x, y in rows))
"""


def test_programs_are_files_that_no_other_includes(clones: Path) -> None:
    (found,) = programs(clones)
    assert [each.title for each in found] == [
        f"someone/graphs/{name}" for name in ("logic/again.dl", "logic/reach.dl", "wrong.dl")
    ]
    assert [folder.name for folder in found[0].include] == ["logic", "someone+graphs"]


def test_programs_that_differ_by_a_number_come_later(tmp_path: Path) -> None:
    (tmp_path / "a+b").mkdir()
    for name in ("plan1", "plan2", "plan3", "zebra"):
        (tmp_path / "a+b" / f"{name}.dl").write_text("")
    (found,) = programs(tmp_path)
    assert [each.name for each in found] == ["plan1.dl", "zebra.dl", "plan2.dl", "plan3.dl"]


def test_without_a_judge_updates_are_compared_and_nothing_is_run_twice(
    clones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = run(clones)
    assert code == 0
    first, second, wrong = (
        table[f"someone/graphs/{name}"] for name in ("logic/again.dl", "logic/reach.dl", "wrong.dl")
    )
    assert [run["verdict"] for run in first["runs"]] == ["ran", "ran"]
    assert [run["rows"] for run in first["runs"]] == [14, 300]
    assert all(run["strategies"]["elastic"] == run["strategies"]["dred"] == 4 for run in first["runs"])
    assert first["runs"][0]["strategies"]["counting"] == {"refused": "E0901"}
    assert second["same"] == "someone/graphs/logic/again.dl"
    assert wrong["elastalog"] == "E0204"
    assert "path(x" not in json.dumps(table)
    capsys.readouterr()
    assert run(clones) == (0, table)
    assert "verdict" not in capsys.readouterr().out


def test_a_judge_that_agrees(clones: Path) -> None:
    code, table = run(clones, "--souffle", judging(clones.parent, CLOSURE), "--only", "again")
    (entry,) = table.values()
    assert (code, [each["verdict"] for each in entry["runs"]]) == (0, ["equal", "equal"])
    assert entry["runs"][0]["facts"] > 14
    assert len(entry["runs"][1]["seconds"]) == len(entry["runs"][1]["megabytes"]) == 2


def test_a_judge_that_differs(clones: Path) -> None:
    code, table = run(
        clones, "--souffle", judging(clones.parent, CLOSURE.replace("path |= more", "break")), "--only", "again"
    )
    (entry,) = table.values()
    (wrong,) = entry["runs"]
    assert (code, wrong["verdict"], wrong["reason"]) == (1, "different", "unexplained")
    assert list(wrong["different"]) == ["path"]


def test_a_program_that_differs_is_made_small(clones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(
        self: Judge, found: Found, checked: CheckedProgram, folder: Path, is_measured: bool = False
    ) -> dict[str, Any]:
        """Differs as long as there is a recursive rule and a fact with a 2."""
        is_wrong = "2" in (folder / "facts" / "edge.facts").read_text() and any(r.is_recursive for r in checked.rules)
        return {"verdict": "different" if is_wrong else "equal"}

    monkeypatch.setattr(Judge, "verdict", verdict)
    monkeypatch.setattr(Judge, "strategies", lambda *_: {})
    scratch = clones.parent / "small"
    assert main([str(clones), "--reduce", "someone/graphs/logic/again.dl", "--scratch", str(scratch)]) == 0
    assert len((scratch / "facts" / "edge.facts").read_text().splitlines()) == 1
    items = (scratch / "source.dl").read_text().splitlines()
    assert [item.split("(")[0] for item in items] == [".decl edge", ".decl path", "path"]


def test_a_command_ends_when_its_time_is_up(tmp_path: Path) -> None:
    endless = execute([sys.executable, "-c", "while True: pass"], tmp_path, 1.0)
    assert (endless.code, 0.5 < endless.seconds < 3) == (None, True)


def test_what_a_process_told_before_it_failed_is_kept() -> None:
    def work(tell: Tell) -> None:
        tell("begun")
        raise ValueError

    assert apart(work, 5.0) == (1, ["begun"])


def test_facts_are_of_the_types_that_are_declared_and_take_values_of_the_text() -> None:
    text = """
    .type Pair = [x: number, next: Pair]
    .type Shape = Dot {} | Box {inner: Shape, size: float}
    .type Odd = More {rest: Even} | Most {rest: Even, shape: Shape}
    .type Even = None {last: Pair} | Further {rest: Odd}
    .decl r(p: Pair, s: Shape, u: unsigned, t: symbol, o: Odd)
    .input r
    .decl s(t: symbol)
    s(t) :- r(_, _, 7, t, _), t != "needle".
    """
    program = Program.parse(text)
    (wanted,) = inputs(program.checked)
    values = Values(Random(1), text, 10)
    lines = [values.line(wanted.relation, "\t") for _ in range(60)]
    assert any("needle" in line for line in lines)
    assert any("\t7\t" in line for line in lines)
    assert any("$Box($" in line for line in lines)
    assert any("$More($None(" in line for line in lines)
    assert any("nil]" in line for line in lines)


def test_facts_that_are_there_are_taken(tmp_path: Path) -> None:
    wanted = inputs(
        Program.parse('.decl a(x: number)\n.decl b(x: number)\n.input a\n.input b(filename="c.txt")').checked
    )
    assert given_folder(tmp_path, wanted) is None
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "a.facts").write_text("1\n")
    assert given_folder(tmp_path, wanted) is None
    (tmp_path / "facts" / "c.txt").write_text("2\n")
    assert given_folder(tmp_path, wanted) == tmp_path / "facts"


def test_only_floats_may_differ_a_little(tmp_path: Path) -> None:
    checked = Program.parse(".decl f(x: float)\n.decl n(x: number)").checked
    for name, lines in {"one": "0.333333\n2\n0\n-0\n", "other": "2.0\n0.3333333333\n0\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.all").write_text(lines)
    (tmp_path / "one" / "n.all").write_text("1\n2\n")
    (tmp_path / "other" / "n.all").write_text("2\n3\n4\n")
    assert differing(tmp_path / "one", tmp_path / "other", checked.relations, ".all") == {"n": (1, 2)}


def test_a_difference_has_a_reason_only_if_the_relation_depends_on_it(tmp_path: Path) -> None:
    text = ".decl a(x: number)\n.decl b(x: number, n: number)\n.decl c(n: number)\n.decl d(x: number)\n"
    text += "b(x, autoinc()) :- a(x).\nc(n) :- b(_, n).\nd(x) :- a(x)."
    checked = Program.parse(text).checked
    assert reason_of(checked, {"b", "c"}, tmp_path).startswith("autoinc()")
    assert reason_of(checked, {"c", "d"}, tmp_path) == "unexplained"
    (tmp_path / "a.all").write_text("1\n2147483647\n")
    assert reason_of(checked, {"d"}, tmp_path) == "unexplained"
    (tmp_path / "a.all").write_text("1\n2147483648\n")
    assert reason_of(checked, {"d"}, tmp_path) == "integers of 64 bits"


def test_an_epoch_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.parse(".decl a(x: number)\n.input a\n.decl b(x: number)\nb(x) :- a(x).")
    explicit = {"a": {(n,) for n in range(9)}}
    updates = random_updates(explicit, Random(1), 3)
    assert any(update.deleted for update in updates)
    assert any(update.inserted for update in updates)
    assert list(judge(program, explicit, updates, ["elastic"])) == [{"strategy": "elastic", "epochs": 4}]
    opened = updating.opened

    def forgetful(program: Program, facts: Facts, strategy: str) -> AbstractContextManager[Session]:
        return opened(program, {"a": set()} if strategy == "dred" else facts, strategy=strategy)

    monkeypatch.setattr(updating, "opened", forgetful)
    (told,) = judge(program, explicit, updates, ["dred"])
    assert told == {"strategy": "dred", "epochs": 0, "different": {"epoch": 1, "relations": ["a", "b"]}}


def test_numbers_that_a_session_goes_on_with_are_those_of_a_session_with_the_same_updates() -> None:
    program = Program.parse(".decl a(x: symbol)\n.input a\n.decl b(n: number)\nb(ord(x)) :- a(x).")
    explicit = {"a": {("p",), ("q",), ("r",)}}
    updates = [Update({"a": [("p",)]}, {"a": [("s",)]}), Update({}, {"a": [("p",)]})]
    assert list(judge(program, explicit, updates, ["elastic"])) == [{"strategy": "elastic", "epochs": 3}]


def test_lists_are_minimised() -> None:
    assert minimised(list(range(100)), lambda some: {3, 50, 99} <= set(some)) == [3, 50, 99]


def test_functors_of_its_own_have_stand_ins(clones: Path) -> None:
    text = """.type L = [s: symbol, rest: L]
.functor total(number, symbol): number
.functor name(unsigned): symbol stateful
.functor joined(L, symbol): L stateful
.decl n(x: number)
n(20). n(-3).
.decl r(y: number, s: symbol, l: L)
r(@total(x, "abc"), @name(5), @joined(["a", nil], "b")) :- n(x).
"""
    (clones / "someone+graphs" / "wrong.dl").write_text(text)
    _, table = run(clones, "--only", "wrong.dl")
    assert [run["verdict"] for run in table["someone/graphs/wrong.dl"]["runs"]] == ["ran"]
    assert table["someone/graphs/wrong.dl"]["runs"][0]["facts"] == 4
    known = Program.parse(text).checked
    scope: dict[str, Any] = {}
    exec("\n".join(map(functors._in_python, functors.own_functors(known))), scope)
    assert (scope["total"](20, "abc"), scope["total"](-3, "é"), scope["name"](5)) == (6, 16, "v5")
    assert scope["joined"](("a", None), "b") == ("a", None)
    made = {functor.name: functors._in_cpp(functor) for functor in known.functors.values()}
    assert made["joined"].endswith("souffle::RamDomain a0, souffle::RamDomain a1) { return a0; }")
    assert made["total"].startswith("int32_t total(int32_t a0, const char* a1) { return ")


def test_souffles_own_tests_are_judged_by_the_files_of_their_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "souffle-lang+souffle" / "tests"
    for category in FOLDERS:
        (root / category).mkdir(parents=True)
        (root / category / "CMakeLists.txt").write_text("")
    (root / "semantic" / "CMakeLists.txt").write_text(
        "positive_test(right)\nnegative_test(refused)\nsouffle_run_test(TEST_NAME wrong\n  CATEGORY semantic)\n"
    )
    for name, rule, wanted in (("right", "p(1).", "1\n"), ("wrong", "p(2).", "1\n"), ("refused", "q(1).", "")):
        (root / "semantic" / name).mkdir()
        (root / "semantic" / name / f"{name}.dl").write_text(f".decl p(x: number)\n{rule}\n.output p\n")
        (root / "semantic" / name / "p.csv").write_text(wanted)
    assert main([str(tmp_path), "--expected"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if "semantic" in line] == ["semantic/wrong: different: p.csv", "semantic: 2 of 3"]
