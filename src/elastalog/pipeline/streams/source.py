"""Where the updates of a stream come from.

A folder holds one update an entry (a diff file, a table with a column `op`, or a folder of them), applied in natural
order of their names: `2.diff` before `10.diff`. A single CSV, TSV or Parquet file holds all of them: a column `step`
says which update a row belongs to, steps are applied in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elastalog.diagnostics.diagnostic import noted
from elastalog.pipeline.files.diff import Diff, read_diff, update_files
from elastalog.pipeline.streams.steps import read_steps
from elastalog.program import Program, RuleEdits, change_rules
from elastalog.relations.schema import Schema, schemas_of


@dataclass(frozen=True, slots=True)
class StreamedUpdate:
    """`batch` identifies the update within its stream: the name of its file, or its step."""

    batch: str
    diff: Diff


def read_stream(path: Path | str, program: Program, *, keep_bad: bool = False) -> Iterator[StreamedUpdate]:
    """The updates of a stream of a program in order. Those of a folder are read when they are asked for; facts may
    belong to relations that an update before declares. `keep_bad` as in `read_diff`; a single file of all updates is
    right or wrong as a whole."""
    path = Path(path)
    if path.is_file():
        for step, diff in read_steps(path, schemas_of(program.checked)):
            yield StreamedUpdate(str(step), diff)
        return
    for part in update_files(path):
        update = StreamedUpdate(part.name, _read(part, program, keep_bad))
        yield update
        if update.diff.changes_rules:
            edits = RuleEdits(update.diff.added_rules, update.diff.removed_rules)
            with noted(f"in {part.name}"):
                program = change_rules(program, edits).after


def _read(part: Path, program: Program, keep_bad: bool) -> Diff:
    def with_added(rules: tuple[str, ...]) -> Mapping[str, Schema]:
        return schemas_of(change_rules(program, RuleEdits(rules)).after.checked)

    return read_diff(part, schemas_of(program.checked), with_added, keep_bad=keep_bad)
