"""Definitions, references and new names."""

from __future__ import annotations

from pathlib import Path

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.editing.references import definition, included_files, references, rename
from elastalog.editing.workspace import roots_of
from tests.editing.marked import Files
from tests.tables import table

EDGES = ".type Node <: symbol\n.decl edge(a: Node, b: Node)\n.input edge\n"


def defined(**texts: str) -> str | None:
    files = Files(**texts)
    return files.shown(definition(files.reading(), *files.cursor))


def found(**texts: str) -> list[str | None]:
    files = Files(**texts)
    reading = files.reading()
    name = reading.at(*files.cursor)
    return [files.shown(place) for place in references([reading], name.symbol)]


def renamed(name: str, **texts: str) -> dict[str, str]:
    """The texts with the new name written in."""
    files = Files(**texts)
    places = rename([files.reading()], *files.cursor, name)
    for place in sorted(places, reverse=True):
        text = files.texts[place.file]
        files.texts[place.file] = text[: place.span.start] + name + text[place.span.end :]
    return {path.rpartition("/")[2].removesuffix(".dl"): text for path, text in files.texts.items()}


def test_a_relation_of_an_included_file() -> None:
    main = '#include "edges.dl"\n.decl p(x: Node)\np(x) :- ed^ge(x, _).\n'
    assert defined(main=main, edges=EDGES) == "edges:2:7 edge"


def test_a_type() -> None:
    assert defined(main=EDGES.replace("b: Node", "b: No^de")) == "main:1:7 Node"


def test_a_variable_is_defined_where_its_clause_first_has_it() -> None:
    assert defined(main=EDGES + "edge(x, y) :- edge(y, x^).\nedge(x, x) :- edge(x, x).\n") == "main:4:6 x"


def test_nothing_is_defined_at_a_blank() -> None:
    assert defined(main=EDGES + "\n\n^\n") is None


def test_relations_of_instances_and_inherited_ones() -> None:
    program = """.comp A { .decl r(x: number)  r(1). }
.comp B : A { .decl s(x: number)  s(x) :- r(x). }
.init b = B
.decl t(x: number)
t(x) :- b.r^(x), b.s(x).
"""
    assert defined(main=program) == "main:1:17 r"
    assert defined(main=program.replace("r^(x)", "r(x)").replace("b.s", "b^.s")) == "main:3:7 b"
    assert found(main=program) == ["main:1:17 r", "main:1:31 r", "main:2:43 r", "main:5:11 r"]


def test_a_parameter_stands_for_itself() -> None:
    assert defined(main=".comp A<T> { .decl r(x: T^) }\n") == "main:1:9 T"


def test_branches_and_functors() -> None:
    program = ".type E = A {} | B {e: E}\n.functor f(x: number): number\n.decl p(e: E, n: number)\np($B($^A), @f(1)).\n"
    assert defined(main=program) == "main:1:11 A"
    assert defined(main=program.replace("^", "").replace("@f(", "@f^(")) == "main:2:10 f"


def test_a_new_name_for_a_relation_in_all_files() -> None:
    main = '.include "edges.dl"\n.decl p(x: Node)\np(x) :- edge(x, y), !ed^ge(y, x).\n.output p\n'
    new = renamed("link", main=main, edges=EDGES)
    assert new["edges"] == EDGES.replace("edge", "link")
    assert new["main"] == '.include "edges.dl"\n.decl p(x: Node)\np(x) :- link(x, y), !link(y, x).\n.output p\n'


def test_a_new_name_for_a_variable_stays_in_its_clause() -> None:
    program = EDGES + "edge(x^, z) :- edge(x, y), edge(y, z), 1 < count : { edge(x, _) }.\nedge(x, x) :- edge(x, _).\n"
    new = renamed("first", main=program)["main"].splitlines()
    assert new[3:] == [
        "edge(first, z) :- edge(first, y), edge(y, z), 1 < count : { edge(first, _) }.",
        "edge(x, x) :- edge(x, _).",
    ]


def test_a_new_name_for_a_component_and_for_a_relation_of_it() -> None:
    program = (
        ".comp C^ { .decl r(x: number) overridable  r(1). }\n"
        ".comp D : C { .override r  r(2). }\n.init c = C\n.output c.r\n"
    )
    assert renamed("E", main=program)["main"] == program.replace("^", "").replace(" C", " E")
    other = program.replace("^", "").replace(".output c.r", ".output c.r^")
    assert renamed("q", main=other)["main"] == other.replace("^", "").replace("r(", "q(").replace(
        "override r ", "override q "
    ).replace("c.r", "c.q")


@pytest.mark.parametrize(("name", "reason"), table(__file__, "names that are refused"))
def test_names_that_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ElastalogError) as fault:
        renamed(name, main=EDGES.replace(".decl edge", ".decl e^dge") + ".decl p(x: Node)\np(x) :- edge(x, _).\n")
    assert [(found.code, found.message) for found in fault.value.diagnostics] == [
        ("E0907", f"nothing was renamed: {reason}")
    ]


def test_a_variable_that_is_taken_in_the_clause() -> None:
    with pytest.raises(ElastalogError, match="`y` is the name of another variable"):
        renamed("y", main=EDGES + "edge(x^, y) :- edge(y, x).\n")


def test_what_a_macro_writes_is_not_renamed() -> None:
    program = (
        "#define BOTH(x, y) edge(x, y), edge(y, x)\n"
        + EDGES
        + ".decl p(x: Node)\np(x) :- BOTH(x, y).\np(x) :- e^dge(x, x).\n"
    )
    with pytest.raises(ElastalogError, match="a macro writes it"):
        renamed("link", main=program)


def test_no_name_nothing_to_rename() -> None:
    with pytest.raises(ElastalogError, match="there is nothing here that has a name of its own"):
        renamed("x", main=EDGES + "// ^nothing\n")


def test_included_files_are_found_in_the_text(tmp_path: Path) -> None:
    for name in ("a.dl", "b.dl", "d.dl"):
        (tmp_path / name).touch()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "c.dl").touch()
    source = Source(
        str(tmp_path / "main.dl"), '#include "a.dl"\n  .include "b.dl"\n# include <c.dl>\n// #include "d.dl"\n'
    )
    found = [path.relative_to(tmp_path).as_posix() for _, path in included_files(source, [str(tmp_path / "lib")])]
    assert found == ["a.dl", "b.dl", "lib/c.dl"]


def test_roots() -> None:
    includes = {
        "main": frozenset({"a", "b"}),
        "a": frozenset({"c"}),
        "other": frozenset({"c"}),
        "x": frozenset({"y"}),
        "y": frozenset({"x"}),
    }
    assert roots_of("c", includes) == ("main", "other")
    assert roots_of("b", includes) == ("main",)
    assert roots_of("main", includes) == ("main",)
    assert roots_of("alone", includes) == ("alone",)
    assert roots_of("x", includes) == ("x",)
