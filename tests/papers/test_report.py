"""Pages are made of records alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.papers import __main__ as every_item
from benchmarks.papers.items import ITEMS, PAPERS
from benchmarks.papers.record import Record, keep, kept
from benchmarks.papers.report import write_pages
from benchmarks.papers.tables import Figures, Plot, Table

assert every_item

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"date": "2026-11-16", "python": "3.11", "system": "Linux", "processor": "aarch64", "cores": 2}


def record(name: str, figures: Figures, mode: str = "quick", load: float = 0.5) -> Record:
    return Record(name, mode, MACHINE, "0123456789ab", load, 1.5, figures)


def example_3(deleted: int) -> Record:
    table = Table("", ("algorithm", "over-deleted", "ratio"), [("DRed", deleted, 1234.5), ("DRed^c", 2, None)])
    plot = Plot("a curve", "n", "ms", {"DRed": [(1, 1), (10, 100)]})
    values = {"DRed over-deleted": deleted, "DRed^c over-deleted": 2}
    return record("dredc.example3", Figures([table], [plot], values))


def claim_line(pages: Path, start: str) -> str:
    (line,) = (line for line in (pages / "claims.md").read_text().splitlines() if line.startswith(f"| {start}"))
    return line


def test_a_record_is_read_as_it_was_kept_and_full_ones_come_first(tmp_path: Path) -> None:
    quick = example_3(4)
    keep(quick, tmp_path)
    found = kept("dredc.example3", tmp_path)
    assert found.figures.values == quick.figures.values
    assert found.figures.tables[0].rows == [["DRed", 4, 1234.5], ["DRed^c", 2, None]]
    keep(record("dredc.example3", Figures(), "full"), tmp_path)
    found = kept("dredc.example3", tmp_path)
    assert found.mode == "full"
    assert kept("dredc.table1", tmp_path) is None


def test_pages_show_what_is_printed_and_measured_and_the_plot(tmp_path: Path) -> None:
    keep(example_3(4), tmp_path / "json")
    write_pages(tmp_path / "json", tmp_path / "pages")
    page = (tmp_path / "pages" / "dredc.md").read_text(encoding="utf-8")
    assert "| DRed | 4: A(a), A(c), A(d), A(e) |" in page
    assert "| DRed | 4 | 1,234 |" in page
    assert "| DRed^c | 2 |  |" in page
    assert "reduced sizes; 2026-11-16, 2 cores aarch64, Python 3.11, commit `0123456789ab`):" in page
    assert "![a curve](plots/dredc.example3.svg)" in page
    assert "<svg" in (tmp_path / "pages" / "plots" / "dredc.example3.svg").read_text(encoding="utf-8")
    assert "Not measured yet: `make papers ONLY=dredc.table1`." in page


def test_a_page_says_that_the_machine_was_busy(tmp_path: Path) -> None:
    keep(record("dredc.example3", Figures(), load=9.0), tmp_path / "json")
    write_pages(tmp_path / "json", tmp_path / "pages")
    assert "`0123456789ab`, the machine busy):" in (tmp_path / "pages" / "dredc.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("deleted", "expected"), [(4, "**holds here**"), (3, "**does not hold**")])
def test_the_page_of_claims_gives_verdicts(tmp_path: Path, deleted: int, expected: str) -> None:
    keep(example_3(deleted), tmp_path / "json")
    write_pages(tmp_path / "json", tmp_path / "pages")
    assert expected in claim_line(tmp_path / "pages", "Example 3")
    assert "**not measured yet**" in claim_line(tmp_path / "pages", "Galen has")
    assert "**not testable with public data**: " in claim_line(tmp_path / "pages", "Annotations cost DDISASM")


def test_equal_records_make_equal_pages(tmp_path: Path) -> None:
    keep(example_3(4), tmp_path / "json")
    for pages in ("one", "two"):
        write_pages(tmp_path / "json", tmp_path / pages)
    files = sorted(file.relative_to(tmp_path / "one") for file in (tmp_path / "one").rglob("*.*"))
    assert len(files) == len(PAPERS) + 3
    assert [
        file for file in files if (tmp_path / "one" / file).read_bytes() != (tmp_path / "two" / file).read_bytes()
    ] == []


def test_pages_in_the_repository_are_those_of_its_records(tmp_path: Path) -> None:
    write_pages(pages=tmp_path)
    stale = [
        page.name for page in tmp_path.glob("*.md")
        if page.read_text(encoding="utf-8") != (ROOT / "docs" / "papers" / page.name).read_text(encoding="utf-8")
    ]  # fmt: skip
    assert stale == []


@pytest.mark.long
def test_items_are_measured_kept_and_shown(tmp_path: Path) -> None:
    names = ["dredc.example3", "debugging.algorithm11", "provenance.table4_4"]
    command = [sys.executable, "-m", "benchmarks.papers", "--quick", "--only", *names]
    command += ["--results", str(tmp_path / "json"), "--pages", str(tmp_path / "pages")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    verdicts = []
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        verdicts.append((tmp_path / "pages" / "claims.md").read_text(encoding="utf-8"))
    assert verdicts[0] == verdicts[1]
    kept_record = json.loads((tmp_path / "json" / "quick" / "dredc.example3.json").read_text(encoding="utf-8"))
    assert kept_record["figures"]["values"]["DRed over-deleted"] == 4
    assert kept_record["machine"]["cores"] == os.cpu_count()
    assert "**holds here**" in claim_line(tmp_path / "pages", "Example 3")
    assert "**does not hold**: `u :- a." in claim_line(tmp_path / "pages", "What Algorithm 11 suggests")
    assert ITEMS["provenance.table4_4"].measure is None
