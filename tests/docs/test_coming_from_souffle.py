"""Every line of the page for those who come from Soufflé is true: what it calls the same or different is accepted, what
it calls not there yet is an error with the code it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.program import Program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "coming-from-souffle.md"
DECLARED = (
    ".decl e(x: number, y: number)\n.decl s(t: symbol)\n.decl p(x: number)\n.decl f(x: float)\n.decl u(x: unsigned)\n"
)
ROW = re.compile(r"^\| (?P<code>`.*`(?: … `[^`]*`)?) \| (?P<here>same|different|not yet) \|(?P<remark>.*)\|$")


def rows() -> list[tuple[str, str, str]]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if row := ROW.match(line):
            code = "\n".join(re.findall(r"`([^`]*)`", row["code"])).replace("\\|", "|")
            found.append((code, row["here"], row["remark"]))
    return found


def test_the_page_has_a_table_for_every_part_of_the_language() -> None:
    assert len(rows()) > 50


@pytest.mark.parametrize(("code", "here", "remark"), rows(), ids=lambda value: value[:50])
def test_the_line_is_true(code: str, here: str, remark: str, tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text("p(1).\n")
    (tmp_path / "program.dl").write_text(f"{DECLARED}{code}\n")
    if here != "not yet":
        Program.load(tmp_path / "program.dl")
        return
    with pytest.raises(ElastalogError) as raised:
        Program.load(tmp_path / "program.dl")
    named = re.findall(r"E\d{4}", remark)
    assert named
    assert set(named) <= {found.code for found in raised.value.diagnostics}
