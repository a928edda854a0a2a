from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import elastalog
from elastalog import ElastalogError, Program
from elastalog.program import as_program
from tests.refusals import refused

TEXT = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"


def test_parse_gives_the_tree_the_meaning_and_the_warnings() -> None:
    program = Program.parse(TEXT)
    assert len(program.tree.items) == 3
    assert list(program.checked.relations) == ["edge", "path"]
    assert [warning.code for warning in program.warnings] == ["E0223"]


def test_parse_raises_all_errors_sorted_by_place() -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse(TEXT + "path(x, y) :- egde(x, y).\npath(x, _) :- edge(x, 1).\n", "mine.dl")
    errors = [d for d in raised.value.diagnostics if d.severity == "error"]
    assert [d.code for d in errors] == ["E0204", "E0321"]
    assert "mine.dl:4:15" in str(raised.value)


def test_errors_of_the_text_come_before_those_of_the_meaning() -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse("path(x, y :- egde(x, y).")
    assert all(d.code.startswith("E01") for d in raised.value.diagnostics)


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_text(TEXT, encoding="utf-8")
    assert Program.load(path).tree.source.name == str(path)
    assert Program.load(str(path)).checked.rules[0].number == 1


@pytest.mark.parametrize("text", [".decl a(x: number)", ".type T <: number .decl a(x: T)", "// .decl a()\n"])
def test_a_text_in_one_line_is_no_path(text: str) -> None:
    assert as_program(text).tree.source.name == "<text>"


@pytest.mark.parametrize("name", ["none.dl", "", "a\0b", "x" * 5000])
def test_load_of_what_is_no_file(tmp_path: Path, name: str) -> None:
    with refused("E0230"):
        Program.load(f"{tmp_path}/{name}")


def test_load_points_at_the_byte_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_bytes("// é\n// ".encode() + b"\xe9 \n")
    with pytest.raises(ElastalogError) as raised:
        Program.load(path)
    (error,) = raised.value.diagnostics
    assert (error.code, error.message) == ("E0231", "the program is not UTF-8: byte 0xe9 at offset 9")
    assert error.source.locate(error.labels[0].span.start) == (2, 4)


def test_a_program_in_utf_16_is_known_by_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x: number)\n", encoding="utf-16")
    with pytest.raises(ElastalogError, match="`iconv -f utf-16 -t utf-8`"):
        Program.load(tmp_path / "p.dl")


def test_a_program_does_not_change() -> None:
    program = Program.parse(TEXT)
    with pytest.raises(FrozenInstanceError):
        program.warnings = ()
    with pytest.raises(TypeError):
        program.checked.relations["x"] = None


def test_threads_parse_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(Program.parse, [TEXT] * 40))
    assert all(program == programs[0] for program in programs)


def test_import_is_light() -> None:
    code = (
        "import sys, elastalog, elastalog.program\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'pandas', 'click', 'rich', 'pygments'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names() -> None:
    assert elastalog.__version__ == "0.1.0"
    assert {"Program", "ElastalogError", "InternalError", "Session", "open"} <= set(dir(elastalog))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        elastalog.nothing  # noqa: B018


def test_a_division_by_zero_is_a_warning() -> None:
    text = ".decl n(x: number)\nn(10 / 0).\nn(x % 0) :- n(x).\nn(x / 10) :- n(x).\n"
    program = Program.parse(text)
    assert [(found.code, found.severity) for found in program.warnings] == [("E0325", "warning")] * 2
    assert Program.parse(".decl n(x: number)\nn(10 / 2). // 1/0\n").warnings == ()


def test_a_store_in_the_place_of_a_program_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").touch()
    with refused(told=f'elastalog.open(store="{tmp_path}")'):
        Program.load(tmp_path)
