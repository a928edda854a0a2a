"""What a service answers, where the engine has no such thing."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord
from elastalog.relations.schema import Schema
from elastalog.session import Session


@dataclass(frozen=True, slots=True)
class Committed:
    """What came of an update: `record` says what was done and what it cost (`is_repeated`: it had been done before;
    `is_unchanged`: there was nothing to do), `changes` what the epoch changed."""

    record: EpochRecord
    changes: Changes

    @property
    def epoch(self) -> int:
        return self.record.epoch


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation at an epoch. `inserted` and `deleted`: facts that came and went in this epoch, None where that is not
    at hand. `rules`: how many derive it. `is_input`, `is_output`: declared so."""

    schema: Schema
    facts: int
    inserted: int | None
    deleted: int | None
    rules: int
    is_input: bool
    is_output: bool

    @property
    def name(self) -> str:
        return self.schema.name

    @staticmethod
    def all_of(session: Session, last: EpochRecord | None) -> tuple[RelationSummary, ...]:
        """Of every declared relation; `last` is the record of the epoch, if it is known."""
        checked = session.program.checked
        rules = dict.fromkeys(checked.relations, 0)
        for rule in checked.rules:
            rules[rule.head.relation] += 1
        found = []
        for name, schema in session.schemas.items():
            changed = None if last is None else last.changes.get(name, ((), ()))
            kinds = {directive.kind for directive in checked.relations[name].directives}
            found.append(
                RelationSummary(
                    schema, len(session[name]), None if changed is None else len(changed[0]),
                    None if changed is None else len(changed[1]), rules[name], "input" in kinds, "output" in kinds,
                )
            )  # fmt: skip
        return tuple(found)
