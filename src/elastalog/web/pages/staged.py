"""An update while it is being staged: a text of changes, one a line, facts and rules alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elastalog.pipeline.files.diff import parse_diff
from elastalog.program import Program
from elastalog.program.rule_change import RuleEdits, change_rules
from elastalog.relations.schema import Schema, schemas_of
from elastalog.web.rules import refuse_in_rules

FILE = "update"
"""What diagnostics call the text."""
RULE = "rule: "


@dataclass(frozen=True, slots=True)
class Staged:
    """Facts by relation, as tables, and rules as they are written."""

    inserted: Mapping[str, Any]
    deleted: Mapping[str, Any]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def facts(self) -> tuple[int, int]:
        """How many facts come, and how many go."""
        came, went = (sum(table.num_rows for table in side.values()) for side in (self.inserted, self.deleted))
        return came, went


def staged_in(text: str, program: Program) -> Staged:
    """The update that a text spells, rules checked together with the program as it is. Raises ElastalogError."""

    def with_rules(added: tuple[str, ...]) -> Mapping[str, Schema]:
        refuse_in_rules(added)
        return schemas_of(change_rules(program, RuleEdits(added)).after.checked)

    diff = parse_diff(text, FILE, schemas_of(program.checked), with_rules)
    if diff.changes_rules:
        change_rules(program, RuleEdits(diff.added_rules, diff.removed_rules))
    return Staged(diff.inserted, diff.deleted, diff.added_rules, diff.removed_rules)


def lines_of(text: str) -> list[tuple[int, str]]:
    """The lines of a text that say something, with their numbers from 0."""
    lines = enumerate(line.strip() for line in text.split("\n"))
    return [(number, line) for number, line in lines if line and not line.startswith("//")]


def without_line(text: str, number: int) -> str:
    """The text without a line."""
    lines = text.split("\n")
    return "\n".join([*lines[:number], *lines[number + 1 :]])
