"""Soufflé's own tests, judged by the files of their folders: what its authors expect, without Soufflé."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from elastalog.diagnostics.diagnostic import ElastalogError
from tests.corpus.finding import Found
from tests.corpus.functors import PYTHON
from tests.corpus.judging import Judge

FOLDERS = ("evaluation", "example", "semantic", "syntactic")
_TEST = re.compile(r"^\s*(?:souffle_)?(\w*test)\s*\(\s*(?:TEST_NAME\s+)?([\w-]+)([^)]*)", re.MULTILINE | re.IGNORECASE)
_FUNCTORS = {"f": "1", "blubb": "1", "id": "given[0]", "decode": "given[0]"}
"""What the functions return that some of the tests bring in C++."""


def print_expected(judge: Judge, checkout: Path, only: str) -> int:
    """Prints what is not as expected, and how many are; 1 if something is not."""
    total = Counter[str]()
    for found, facts, must_fail in _tests(checkout):
        if only not in found.title:
            continue
        category = found.name.partition("/")[0]
        reason = _unexpected(judge, found, facts, must_fail)
        total += Counter({category: 1, f"{category} as expected": reason is None})
        if reason is not None:
            print(f"{found.name}: {reason}", flush=True)
    for category in FOLDERS:
        print(f"{category}: {total[f'{category} as expected']} of {total[category]}")
    return int(2 * sum(total[category] for category in FOLDERS) != total.total())


def _tests(checkout: Path) -> Iterator[tuple[Found, Path, bool]]:
    """Each test with the folder of its facts, and whether it must be refused. One of several facts is several."""
    for category in FOLDERS:
        root = checkout / "tests" / category
        for kind, name, more in _TEST.findall((root / "CMakeLists.txt").read_text()):
            folder, words = root / name, more.split()
            if not (folder / f"{name}.dl").exists():
                continue
            include = (folder, *(folder / word for word in words if (folder / word).is_dir()))
            several = [folder / word for word in words if "FACTS_DIR_NAMES" in words and (folder / word).is_dir()]
            for facts in several or [folder / "facts"]:
                title = "/".join([category, name, *([facts.name] if several else [])])
                found = Found("souffle-lang/souffle/tests", "", title, (folder / f"{name}.dl",), include)
                yield found, facts, "negative" in kind.lower() or "NEGATIVE" in words


def _unexpected(judge: Judge, found: Found, facts: Path, must_fail: bool) -> str | None:
    """Why a test is not as expected, None if it is."""
    try:
        judge.read(found)
    except ElastalogError as error:
        codes = sorted({each.code for each in error.diagnostics if each.severity == "error"})
        return None if must_fail else f"refused: {' '.join(codes)}"
    wanted = facts if facts.name != "facts" else facts.parent
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("ours", "work"):
            (folder / name).mkdir()
        (folder / "facts").symlink_to(facts if facts.is_dir() else folder / "work")
        (folder / "program.dl").write_text(found.text())
        used = [name for name in _FUNCTORS if f"@{name}(" in found.files[0].read_text()]
        if used:
            (folder / PYTHON).write_text("\n".join(f"def {n}(*given): return {_FUNCTORS[n]}" for n in used))
        ended = judge.run_ours(found, folder, output="-" if "stdout" in found.files[0].stem else "")
        if must_fail:
            return "accepted, where Soufflé refuses it" if ended.code == 0 else None
        if ended.code != 0:
            return f"stopped: {' '.join(re.findall(r'E0[0-9]{3}', ended.said)) or ended.said[-200:]}"
        for file in (folder / "ours").glob("*.sqlite.output"):
            table = re.findall(r"FROM (\w+)", (wanted / f"{file.name}.script").read_text())[0]
            with sqlite3.connect(file) as database:
                lines = (str(row[0]) for row in database.execute(f"SELECT * FROM {table}"))
                (folder / "ours" / f"{file.name.partition('.')[0]}.csv").write_text("\n".join(lines))
        wrong = [
            file.name
            for file in sorted(wanted.iterdir())
            if file.suffix in (".csv", ".json") and _lines(file) != _lines(folder / "ours" / file.name)
        ]
        out = wanted / f"{found.files[0].stem}.out"
        if out.exists() and _lines(out) != _lines(folder / "work" / "out"):
            wrong.append("standard output")
    return f"different: {', '.join(wrong)}" if wrong else None


def _lines(file: Path) -> list[bytes] | None:
    return sorted(file.read_bytes().splitlines()) if file.exists() else None
