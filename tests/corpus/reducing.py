"""A program that differs, made small by leaving out rules and facts while it still differs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from elastalog.analysis.program import CheckedProgram
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.program import Program
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Directive
from tests.corpus.facts import given_folder, inputs
from tests.corpus.finding import Found
from tests.corpus.judging import Judge, row_counts, seed_of

T = TypeVar("T")
Rows = list[tuple[str, str]]
"""Lines of fact files, each with the name of its file."""


def reduce(judge: Judge, found: Found, scratch: Path) -> int:
    """Writes the smallest program that differs, and its facts, into a folder; 1 if there is no difference at all."""
    program = judge.read(found)
    wanted = inputs(program.checked)
    for rows in row_counts(wanted, given_folder(found.files[0].parent, wanted)):
        seed = seed_of(found, rows)
        with judge.laid_out(found, program.checked, rows) as folder:
            kind = wrong_way(judge, found, program.checked, folder, seed)
            files = {
                str(path.relative_to(folder / "facts")): path.read_text().splitlines()
                for path in (folder / "facts").rglob("*")
                if path.is_file()
            }
        if kind is not None:
            break
    else:
        print("there is no difference")
        return 1
    print(f"{kind}, with {rows} rows")
    items = [
        print_item(item) for item in parse(Source("program.dl", program.flat_text))[0].items if not _is_output(item)
    ]
    items += [f'.input {one.relation.name}(filename="{one.name}")' for one in wanted if one.directive is None]
    lines: Rows = [(name, line) for name, each in files.items() for line in each]

    def differs(items: list[str], lines: Rows, folder: Path) -> bool:
        """Whether what is left does so in the same way; with the program and its facts in the folder."""
        (folder / "source.dl").write_text("\n".join(items))
        small = replace(found, files=(folder / "source.dl",), include=(), macros=())
        try:
            checked = Program.parse(small.text(), "program.dl").checked
        except ElastalogError:
            return False
        judge.lay_out(small, checked, [], folder)
        for name in files:
            path = folder / "facts" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for file, line in lines if file == name))
        return wrong_way(judge, small, checked, folder, seed) == kind

    def still(items: list[str], lines: Rows) -> bool:
        with tempfile.TemporaryDirectory() as made:
            return differs(items, lines, Path(made))

    if not still(items, lines):
        print("it does not differ once components are written out: look at the program itself")
        return 1
    before = -1
    while before != len(items) + len(lines):
        before = len(items) + len(lines)
        items = minimised(items, lambda fewer, rest=lines: still(fewer, rest))
        lines = minimised(lines, lambda fewer, rest=items: still(rest, fewer))
        print(f"{len(items)} declarations and rules, {len(lines)} facts", flush=True)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    differs(items, lines, scratch)
    return 0


def wrong_way(judge: Judge, found: Found, checked: CheckedProgram, folder: Path, seed: int) -> str | None:
    """In which way what both make of a folder is wrong, or what a strategy does, if that is."""
    verdict = judge.verdict(found, checked, folder)
    if verdict["verdict"] in ("different", "failed", "Soufflé stopped"):
        return f"{verdict['verdict']} {verdict.get('reason', '') if verdict['verdict'] == 'failed' else ''}"
    told = judge.strategies(found, folder, seed)
    return next((name for name, each in told.items() if isinstance(each, dict) and "refused" not in each), None)


def minimised(items: list[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """The items without as many as can be left out one after the other, large parts first."""
    size = max(1, len(items) // 2)
    while True:
        start = 0
        while start < len(items):
            fewer = items[:start] + items[start + size :]
            if holds(fewer):
                items = fewer
            else:
                start += size
        if size == 1:
            return items
        size //= 2


def _is_output(item: object) -> bool:
    return isinstance(item, Directive) and item.kind in ("output", "printsize")
