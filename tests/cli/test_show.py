from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from elastalog.cli.main import cli
from elastalog.cli.programs import STAGES

TEXT = (
    ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n"
    "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\nedge(1, 2).\n"
)


def show(folder: Path, stage: str, text: str = TEXT) -> Result:
    path = folder / "program.dl"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(cli, ["show", str(path), "--stage", stage])


def test_tokens(tmp_path: Path) -> None:
    lines = show(tmp_path, "tokens").stdout.splitlines()
    assert lines[:3] == ["1:1\tdirective\t.decl", "1:7\tname\tedge", "1:11\tsymbol\t("]


def test_tree(tmp_path: Path) -> None:
    lines = show(tmp_path, "tree").stdout.splitlines()
    start = lines.index("Clause @4:1")
    assert lines[start : start + 5] == [
        "Clause @4:1",
        "  head: Atom relation=path @4:1",
        "    Variable name=x @4:6",
        "    Variable name=y @4:9",
        "  body: Atom relation=edge @4:15",
    ]


def test_checked(tmp_path: Path) -> None:
    assert show(tmp_path, "checked").stdout.splitlines() == [
        ".decl edge(x: number, y: number)    // .input",
        ".decl path(x: number, y: number)",
        "edge(1, 2).",
        "path(x, y) :- edge(x, y).    // rule 1; path 1; x: number, y: number",
        "path(x, z) :- path(x, y), edge(y, z).    // rule 2; path 2; recursive; x: number, y: number, z: number",
    ]


def test_strata(tmp_path: Path) -> None:
    lines = show(tmp_path, "strata").stdout.splitlines()
    assert lines[0] == "stratum 0: edge (no rules)"
    assert lines[1] == "stratum 1: path (recursive)"


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_reports_faults(tmp_path: Path, stage: str) -> None:
    result = show(tmp_path, stage, 'edge(1, "a).')
    assert result.exit_code == 1
    assert "error[E0" in result.stderr
    assert "error[E0" not in result.stdout
