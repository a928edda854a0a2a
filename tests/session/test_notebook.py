"""Notebooks: cells of Datalog, and what sessions and answers look like in them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import elastalog
from elastalog import ElastalogError

PROGRAM = """
.decl edge(from: number, to: number)

.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""


def shell() -> tuple[dict[str, Any], Any]:
    variables: dict[str, Any] = {}
    magics: dict[str, Any] = {}
    extension = SimpleNamespace(
        user_ns=variables, register_magic_function=lambda function, kind, name: magics.update({(kind, name): function})
    )
    elastalog.load_ipython_extension(extension)
    return variables, magics["cell", "datalog"]


def test_cells_of_programs_and_queries() -> None:
    variables, datalog = shell()
    variables["links"] = {"edge": [(1, 2), (2, 3)]}
    variables["start"] = 1
    session = datalog("db --facts links", PROGRAM)
    assert variables["db"] is session
    assert sorted(datalog("", "path(?start, X)")) == [(2,), (3,)]
    assert sorted(datalog("db", "path(1, X), edge(X, Y)")) == [(2, 3)]
    again = datalog("", PROGRAM + "edge(7, 8).")
    assert variables["db"] is again
    with pytest.raises(ElastalogError):
        session.apply({"edge": [(3, 4)]})  # its place was taken, and it was closed
    with pytest.raises(TypeError):
        datalog("other", "path(1, X)")


def test_a_cell_with_a_store_can_be_run_again(tmp_path: Path) -> None:
    variables, datalog = shell()
    first = datalog(f"--store {tmp_path / 'kept'}", PROGRAM)
    first.apply({"edge": [(1, 2)]})
    again = datalog(f"--store {tmp_path / 'kept'}", PROGRAM)
    assert variables["db"] is again
    assert sorted(again["edge"]) == [(1, 2)]
    again.close()


@pytest.mark.parametrize("line", ["db --fact links", "db --store", "db other", "1x", "db --facts"])
def test_slips_in_the_first_line_of_a_cell_are_told(line: str) -> None:
    variables, datalog = shell()
    with pytest.raises(TypeError, match="a cell has one variable, and options with a value each"):
        datalog(line, PROGRAM)
    with pytest.raises(TypeError, match="`--facts` names a variable or a folder, not 'linsk'"):
        datalog("db --facts linsk", PROGRAM)
    assert not variables


def test_a_parameter_without_a_variable_is_told() -> None:
    variables, datalog = shell()
    datalog("", PROGRAM + "edge(1, 2).")
    variables["town"] = 1
    with pytest.raises(ElastalogError, match=r"E0619.*no variable `twon`\n.*did you mean `town`\?"):
        datalog("", "path(?twon, X)")
    with pytest.raises(ElastalogError, match=r"E0619.*\n.*`elsewhere = 1`, in a cell before this one"):
        datalog("", "path(?elsewhere, X)")
    assert list(datalog("", 'path(?town, X), "?twon" != ""')) == [(2,)]


def test_a_change_of_rules_may_be_a_preview_alone() -> None:
    with elastalog.open(PROGRAM + "edge(1, 2).") as db:
        changes = db.change_rules(".decl back(x: number)\nback(x) :- edge(_, x).", preview=True)
        assert list(changes["back"].inserted) == [(2,)]
        assert "back" not in db


def test_an_error_shows_lines_of_the_user_alone() -> None:
    def ask() -> None:
        elastalog.open(PROGRAM).query("pth(1, X)")

    with pytest.raises(ElastalogError) as raised:
        ask()
    *lines, told = raised.value._render_traceback_()
    assert told == str(raised.value)
    assert any('elastalog.open(PROGRAM).query("pth(1, X)")' in line for line in lines)
    assert not any(str(Path(elastalog.__file__).parent) in line for line in lines)


def test_everything_that_a_session_gives_shows_in_a_notebook() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}) as db:
        changes = db.apply({"edge": [(3, 4)]})
        shown = {
            "session": db, "relation": db["path"], "changes": changes, "statistics": db.statistics(),
            "suggestion": db.suggest(unwanted=["path(1, 4)"]), "proof": db.explain("path(1, 4)"),
        }  # fmt: skip
        for name, value in shown.items():
            html = value._repr_html_()
            assert html.startswith("<"), name
            assert "<html" not in html
        assert "edge(3, 4)" in shown["suggestion"]._repr_html_()
        assert "<td>path</td><td>+3</td><td>-0</td>" in changes._repr_html_()
        assert db._ipython_key_completions_() == ["edge", "path"]


def test_changes_as_a_data_frame() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2)]}) as db:
        frame = db.apply({"edge": [(5, 6)]}, {"edge": [(1, 2)]}).to_pandas()
        assert list(frame.columns) == ["op", "relation", "a1", "a2"]
        assert sorted(map(tuple, frame.itertuples(index=False))) == [
            ("+", "edge", 5, 6), ("+", "path", 5, 6), ("-", "edge", 1, 2), ("-", "path", 1, 2),
        ]  # fmt: skip
        assert list(db.apply().to_pandas().columns) == ["op", "relation"]
        ours = db.apply({"edge": [(6, 7)]}, {"edge": [(5, 6)]})["edge"].to_pandas()
        assert (list(ours.columns), ours.values.tolist()) == (["op", "from", "to"], [["-", 5, 6], ["+", 6, 7]])
        assert list(db.apply()["path"].to_pandas().columns) == ["op", "from", "to"]


def test_relations_are_filtered_and_sorted() -> None:
    with elastalog.open(PROGRAM, {"edge": [(3, 1), (1, 2), (2, 3)]}) as db:
        assert list(db["edge"].sort()) == [(1, 2), (2, 3), (3, 1)]
        assert db["edge"].sort("to").head(2) == [(3, 1), (1, 2)]
        assert list(db["edge"].sort("to", descending=True)) == [(2, 3), (1, 2), (3, 1)]
        assert list(db["edge"].filter(lambda x, y: x > y)) == [(3, 1)]
        assert db["edge"].filter(lambda x, y: x < y).sort().to_pandas()["to"].tolist() == [2, 3]
        with pytest.raises(ElastalogError):
            db["edge"].sort("x")


def test_what_has_no_order_in_python_is_sorted_too() -> None:
    program = ".type P = [a: number, b: float]\n.type T = Leaf {} | Node {v: float}\n.decl r(f: float, p: P, t: T)"
    nan, leaf, node = math.nan, elastalog.Branch("Leaf"), elastalog.Branch("Node", 1.0)
    rows = [(3.0, (1, nan), node), (nan, (1, 0.5), leaf), (1.0, None, node), (-math.inf, (0, 9.0), leaf)]
    with elastalog.open(program, {"r": rows}) as db:
        assert [str(f) for f, _, _ in db["r"].sort("f")] == ["nan", "-inf", "1.0", "3.0"]
        assert [str(f) for f, _, _ in db["r"].sort("f", reverse=True)] == ["3.0", "1.0", "-inf", "nan"]
        assert [f for f, _, _ in db["r"].sort("p")][:3] == [1.0, -math.inf, 3.0]
        assert [t for _, _, t in db["r"].sort("t", "f")] == [leaf, leaf, node, node]


def test_a_data_frame_of_a_relation_has_its_names() -> None:
    with elastalog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}) as db:
        frame = pd.DataFrame(db["edge"])
        assert list(frame.columns) == ["from", "to"]
        assert repr(sorted(db["edge"])) == "[(1, 2), (2, 3)]"
        assert pd.DataFrame(db.query("path(1, X)")).columns.tolist() == ["X"]
        db.apply({"edge": list(db["path"])})
        assert len(db["edge"]) == 3


def test_compiling_is_announced_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from elastalog.session import opening

    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    opening._tell("compiling")
    assert capsys.readouterr().err == "elastalog: compiling\n"
