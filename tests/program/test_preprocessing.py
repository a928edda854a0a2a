"""The preprocessor: what becomes of a text, where each part of it was written, and what is wrong with it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from re import _constants, _parser
from typing import Any

import pytest
from click.testing import CliRunner

import elastalog
from elastalog.cli.main import cli
from elastalog.diagnostics.diagnostic import ElastalogError, render_json, render_text
from elastalog.diagnostics.source import Source
from elastalog.program import Program, macros, read_program_text
from elastalog.program.preprocessing import preprocess, preprocessing
from tests.commands import run
from tests.refusals import refused
from tests.tables import table

DECLARED = ".decl p(x: number)\n.output p\n"


def expanded(text: str, **options: object) -> str:
    """The text that a text stands for, blank lines left out."""
    given = preprocessing(**options)
    whole = preprocess(Source("main.dl", text), given, read_program_text).text
    return "\n".join(line for line in whole.splitlines() if line.strip())


def faults(text: str, **options: object) -> list[tuple[str, str]]:
    with pytest.raises(ElastalogError) as raised:
        expanded(text, **options)
    return [(found.code, found.message) for found in raised.value.diagnostics]


@pytest.mark.parametrize(("text", "meaning"), table(__file__, "macros and conditions"))
def test_macros_and_conditions(text: str, meaning: str) -> None:
    assert expanded(text) == meaning


def test_a_text_without_preprocessor_lines_is_taken_as_it_is() -> None:
    source = Source("main.dl", 'p(1). // #define\n/*\n#if\n*/ q("#x").\n')
    assert preprocess(source, preprocessing(), read_program_text).text == source.text
    plain = Source("main.dl", "p(1).")
    assert preprocess(plain, preprocessing(), read_program_text) is plain


def test_a_file_is_named_as_where_it_is_included(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.dl").write_text('#include "b.dl"\np(__FILE__, __LINE__).\n')
    (tmp_path / "sub" / "b.dl").write_text("p(__FILE__, __LINE__).\n")
    text = '#include "sub/a.dl"\np(__FILE__, __LINE__).'
    assert expanded(text, include=[tmp_path]) == 'p("b.dl", 1).\np("sub/a.dl", 2).\np("main.dl", 2).'


def test_macros_that_are_given_need_no_preprocessor_line() -> None:
    assert expanded("p(A, B, C, D).", macros={"A": 3, "B": "x + 1", "C": True, "D": None}) == "p(3, x + 1, 1, )."


def test_without_the_preprocessor_its_lines_are_errors_and_macros_are_names(tmp_path: Path) -> None:
    assert expanded("p(A).", macros={"A": 1}, is_on=False) == "p(A)."
    assert expanded('p(__LINE__). // __LINE__\nq("__FILE__", __LINE__, __COUNTER__x).', is_on=False) == (
        'p(1). // __LINE__\nq("__FILE__", 2, __COUNTER__x).'
    )
    with refused("E0197"):
        Program.parse("#define A 1\n" + DECLARED, preprocess=False)
    (tmp_path / "a.dl").write_text(DECLARED)
    (tmp_path / "main.dl").write_text('.include "a.dl"\np(1).')
    assert Program.load(tmp_path / "main.dl", preprocess=False).checked.relations.keys() == {"p"}


@pytest.mark.parametrize(("text", "fault"), table(__file__, "faults", columns=2))
def test_faults(text: str, fault: tuple[str, str]) -> None:
    assert faults(text) == [fault]


def test_a_condition_that_is_no_expression_is_reported() -> None:
    ((code, message),) = faults("#if 1 +\n#endif")
    assert code == "E0126"
    assert message.startswith("this condition cannot be judged: could not evaluate expression")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program that includes a file beside it, which includes another from elsewhere."""
    (tmp_path / "main.dl").write_text('// the program\n#include "rules/paths.dl"\n.output path\n')
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "paths.dl").write_text(
        "#include <edges.dl>\n.decl path(x: number, y: number)\npath(x, y) :- STEP(x, y).\n"
    )
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "edges.dl").write_text(
        ".once\n#define STEP(x, y) edge(x, y)\n.decl edge(x: number, y: number)\nedge(1, 2).\n"
    )
    return tmp_path


def test_files_are_included_from_beside_and_from_folders(project: Path) -> None:
    program = Program.load(project / "main.dl", include=[project / "library"])
    with elastalog.open(program) as db:
        assert set(db["path"]) == {(1, 2)}


def test_diagnostics_point_into_the_file_with_the_way_to_it(project: Path) -> None:
    (project / "library" / "edges.dl").write_text("#define STEP(x, y) edgee(x, y)\n.decl edge(x: number, y: number)\n")
    with pytest.raises(ElastalogError) as raised:
        Program.load(project / "main.dl", include=[project / "library"])
    (unknown,) = [found for found in raised.value.diagnostics if found.severity == "error"]
    text = render_text(unknown).replace(f"{project}/", "")
    assert text == (
        "error[E0204]: unknown relation `edgee`\n"
        " --> rules/paths.dl:3:15\n"
        "3 | path(x, y) :- STEP(x, y).\n"
        "  |               ^^^^^^^^^^ not declared\n"
        "  = note: expanded from macro `STEP`, defined at library/edges.dl:1\n"
        "  = note: included from main.dl:2\n"
        "  = help: did you mean `edge`?"
    )
    (label,) = json.loads(render_json([unknown]))[0]["labels"]
    assert label["file"].endswith("rules/paths.dl")
    assert (label["line"], label["column"], label["end_column"]) == (3, 15, 25)


def test_labels_in_several_files_are_shown_with_each(project: Path) -> None:
    (project / "main.dl").write_text('#include "rules/paths.dl"\n.decl path(x: symbol)\n')
    with pytest.raises(ElastalogError) as raised:
        Program.load(project / "main.dl", include=[project / "library"])
    text = render_text(raised.value.diagnostics[0]).replace(f"{project}/", "")
    assert text == (
        "error[E0201]: relation `path` is declared twice\n"
        " --> main.dl:2:7\n"
        "2 | .decl path(x: symbol)\n"
        "  |       ^^^^ declared again here\n"
        " --> rules/paths.dl:2:7\n"
        "2 | .decl path(x: number, y: number)\n"
        "  |       ---- first declared here\n"
        "  = help: remove one of the declarations, or rename it"
    )


def test_line_numbers_of_another_file_are_honoured() -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse('p(1).\n#line 40 "generated.dl"\nq(1).\n# 7\nr(1).\n', "main.dl")
    places = [render_text(found).split("\n")[1].strip() for found in raised.value.diagnostics]
    assert places == ["--> main.dl:1:1", "--> generated.dl:40:1", "--> generated.dl:7:1"]


def test_a_file_that_is_to_be_included_once_is(tmp_path: Path) -> None:
    for word in (".once", "#pragma once"):
        (tmp_path / "a.dl").write_text(f"{word}\n{DECLARED}p(1).")  # without a line end
        (tmp_path / "main.dl").write_text('#include "a.dl"\n.include "a.dl"\n#include "./a.dl"\np(2).\n')
        with elastalog.open(tmp_path / "main.dl") as db:
            assert set(db["p"]) == {(1,), (2,)}


def test_files_that_include_each_other_are_an_error_and_no_hang(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('#include "b.dl"\n')
    (tmp_path / "b.dl").write_text('#include "a.dl"\n')
    with refused("E0127"):
        Program.load(tmp_path / "a.dl")


def test_macros_may_grow_to_thousands_of_characters() -> None:
    text = "#define A0 xxxxxxxxxx\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 14)) + "p(A13)."
    assert len(expanded(text)) > 80_000


def test_the_text_of_an_included_file_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_bytes(b"\xff\xfe")
    (tmp_path / "main.dl").write_text('#include "a.dl"')
    with pytest.raises(ElastalogError) as raised:
        Program.load(tmp_path / "main.dl")
    assert [(d.code, d.message.replace(str(tmp_path), "")) for d in raised.value.diagnostics] == [
        ("E0125", "`a.dl` cannot be included: byte 0xff at offset 0")
    ]


def test_options_of_the_wrong_kind_are_named() -> None:
    for options in ({"include": "folder"}, {"include": [3]}, {"macros": ["A"]}):
        with pytest.raises(ElastalogError):
            Program.parse(DECLARED, **options)


def test_a_store_opens_again_when_the_included_files_are_gone(project: Path) -> None:
    with elastalog.open(
        Program.load(project / "main.dl", include=[project / "library"]), store=project / "store"
    ) as db:
        assert set(db["path"]) == {(1, 2)}
    for file in project.rglob("*.dl"):
        if "store" not in file.parts:
            file.unlink()
    with elastalog.open(store=project / "store") as db:
        assert set(db["path"]) == {(1, 2)}
        with db.update() as update:
            update.insert("edge", [(2, 3)])
        assert set(db["path"]) == {(1, 2), (2, 3)}


def test_the_commands_take_the_options(project: Path) -> None:
    main, library = str(project / "main.dl"), str(project / "library")
    runner = CliRunner()
    assert runner.invoke(cli, ["check", main]).exit_code == 1
    assert runner.invoke(cli, ["check", "-I", library, main]).exit_code == 0
    shown = runner.invoke(cli, ["show", "-I", library, main, "--stage", "checked"])
    assert "path(x, y) :- edge(x, y)." in shown.output
    (project / "m.dl").write_text(DECLARED + "p(A + B).\n")
    done = runner.invoke(cli, ["run", str(project / "m.dl"), "-M", "A=1 B=2", "-D", str(project / "out")])
    assert done.exit_code == 0, done.output
    assert (project / "out" / "p.csv").read_text() == "3\n"
    assert "not NAME" in runner.invoke(cli, ["check", "-M", "1=2", main]).output
    off = runner.invoke(cli, ["check", "--no-preprocessor", main])
    assert off.exit_code == 1
    assert "E0197" in off.output


def test_a_program_is_read_from_standard_input(tmp_path: Path) -> None:
    text = "#define A 3\n" + DECLARED + "p(A).\n"
    done = run("run", "-", "-D", tmp_path, text=text)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.csv").read_text() == "3\n"


DOUBLING = "#define A0 x, x\n" + "".join(f"#define A{n + 1} A{n}, A{n}\n" for n in range(30))


@pytest.mark.parametrize("use", ["A30", "T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(T(x))))))))))))))))))))"])
def test_macros_that_double_again_and_again_are_refused(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macros, "MOST_TOKENS", 20_000)
    text = f"{DOUBLING}#define T(a) a, a\n.decl e(x: number)\n.decl p()\np() :- e({use}).\n"
    with refused("E0128", told="become more than 20,000 tokens"):
        Program.parse(text)


def test_macros_that_are_used_too_often_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macros, "MOST_CHARACTERS", 1000)
    text = "#define LONG 1111111111\n.decl e(x: number)\n" + "e(LONG).\n" * 101
    with refused("E0128", told="become more than 1,000 characters"):
        Program.parse(text)
    Program.parse("#define LONG 1111111111\n.decl e(x: number)\n" + "e(LONG).\n" * 100)


def test_names_are_found_between_all_that_can_hide_them() -> None:
    text = (
        "#define N 7\n#define Né 8\n"
        'p(N). // N\np("N", N, "\\"N"). /* N\n#define N 9\n.include "none" */ p(N).\n'
        "p(éN, Né, aN, N1, N_, 1.N, 1e+N, x.N, ?N, .5N, N).\n/p(N)/ N\n"
    )
    lines = [line for line in expanded(text).splitlines() if line]
    assert lines == [
        "p(7). // N",
        'p("N", 7, "\\"N"). /* N',
        "#define N 9",
        '.include "none" */ p(7).',
        "p(éN, 8, aN, N1, N_, 1.N, 1e+N, x.7, ?7, .5N, 7).",
        "/p(7)/ 7",
    ]


LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)


def parts_of(node: Any) -> Iterator[tuple[Any, Any]]:
    """The operations of a parsed pattern, also those inside of others."""
    if isinstance(node, _parser.SubPattern):
        for operation, given in node:
            yield operation, given
            yield from parts_of(given)
    elif isinstance(node, tuple | list):
        for part in node:
            yield from parts_of(part)


def patterns() -> dict[str, re.Pattern[Any]]:
    found = {"a use of a macro": macros._first_of(["one", "two"])}
    for name in ("cli.main", "pipeline.files.read"):  # which import nearly all others
        import_module(f"elastalog.{name}")
    for name, module in [*sys.modules.items()]:
        if name.startswith("elastalog."):
            found |= {f"{name}.{own}": value for own, value in vars(module).items() if isinstance(value, re.Pattern)}
    return found


def test_no_possessive_group_looks_ahead() -> None:
    """Before Python 3.11.5 such a group goes on behind what the look has seen: no line was preprocessed there."""
    known = patterns()
    assert len(known) > 20
    for name, pattern in known.items():
        for operation, given in parts_of(_parser.parse(pattern.pattern, pattern.flags)):
            if operation is _constants.POSSESSIVE_REPEAT:
                assert not any(inside in LOOKS for inside, _ in parts_of(given)), name
