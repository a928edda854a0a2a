"""An update in the making: of a session here, or of a service elsewhere."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeVar

import numpy as np

from elastalog.diagnostics.arguments import listed, require_mapping, require_place, stays_here, wrong_kind
from elastalog.diagnostics.diagnostic import error, noted
from elastalog.evaluation.changes import Changes, Update
from elastalog.evaluation.epochs import EpochRecord
from elastalog.pipeline.files.policy import FAIL, BadChanges, BadRow, BadRows, Report
from elastalog.pipeline.spark.engine import good_spark_rows, is_spark_rows
from elastalog.program import Program, RuleChange, RuleEdits, change_rules, difference, rule_texts
from elastalog.relations.schema import Schema, schema_named, schemas_of

if TYPE_CHECKING:
    from elastalog.pipeline.files.diff import Diff

T = TypeVar("T")

_ENDS = {
    "committed": "the update has been committed already",
    "dropped": "the update was dropped when an exception left its `with` block",
}


class DraftUpdate(ABC):
    """Insertions and deletions of facts, and changes of rules, that become one epoch: on leaving its `with` block, or
    by `commit`. It is dropped if an exception passes. After either it takes nothing any more."""

    _end: Literal["committed", "dropped"] | None = None

    __reduce__ = stays_here("an update", "make it with `db.update()` in the process that commits it")

    @abstractmethod
    def insert(self, relation: str, rows: Any) -> None:
        """Explicit facts to add."""

    @abstractmethod
    def delete(self, relation: str, rows: Any) -> None:
        """Explicit facts to remove; removing one that is not there changes nothing."""

    @abstractmethod
    def add_rules(self, rules: str | Iterable[str]) -> None:
        """Rules to add, as program text, or several of them; it may also declare new relations, and hold facts. A rule
        that is there already is not added again."""

    @abstractmethod
    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        """Rules to remove: by their number in the program of the moment, or by their text, however it is laid out."""

    @abstractmethod
    def commit(self) -> Changes:
        """Makes it the next epoch, and tells what it changed."""

    def _commit(self) -> None:
        """Makes it the next epoch, as the end of its block does."""
        self.commit()

    @property
    @abstractmethod
    def changes(self) -> Changes:
        """What the update changed, once committed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._end is not None:
            return
        if kind is None:
            self._commit()
        else:
            self._end = "dropped"

    def require_open(self) -> None:
        """Raises ElastalogError once the update has been committed or dropped."""
        if self._end is not None:
            raise error("E0620", told=_ENDS[self._end])


def by_relation(side: Literal["inserted", "deleted"], given: Mapping[str, Any] | None) -> Iterable[tuple[str, Any]]:
    """The rows of one side of an update. Raises WrongArgument unless they are given by relation."""
    require_mapping(f"what is {side} is given by relation", given, 'give a mapping, as `{"edge": [(1, 2)]}`')
    return () if given is None else given.items()


def once_committed(found: T | None) -> T:
    """What is known of an update after its commit. Raises ElastalogError before."""
    if found is None:
        raise error("E0611")
    return found


_NO_EDITS: Final = RuleEdits()


class UpdateTarget(Protocol):
    """What a pending update needs of the session that it is for."""

    @property
    def program(self) -> Program:
        """The program of the moment."""

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """Its relations."""

    @property
    def spark(self) -> Any:
        """The Spark session that sources of facts are read by, if one was given."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held while others must not update."""

    def encode(self, name: str, rows: Any, schemas: Mapping[str, Schema] | None = None) -> np.ndarray:
        """Facts of a relation as words; `schemas` are those of the session unless given."""

    def reading(self) -> AbstractContextManager[object]:
        """A block in which reading files obeys the limits of the session."""

    def commit(self, update: Update, committed: Callable[[EpochRecord], None]) -> EpochRecord:
        """Applies an update: the next epoch. Calls `committed` as soon as nothing can prevent it any more."""

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed."""


class PendingUpdate(DraftUpdate):
    """An update of a session: made of words, rules checked as they come. After the commit: `changes`, `stats`."""

    def __init__(
        self, target: UpdateTarget, source: str | None, batch: str | int | None, policy: BadRows = FAIL
    ) -> None:
        self._target = target
        self._source = source
        self._batch = batch
        self._inserted: dict[str, np.ndarray] = {}
        self._deleted: dict[str, np.ndarray] = {}
        if policy is not FAIL:
            self._policy = policy
            self.keeps_bad = policy.lets_pass

    # What few updates have.
    keeps_bad = False
    """Whether bad rows are kept apart, and are no errors."""
    _policy = FAIL
    _edits = _NO_EDITS
    _change: RuleChange | None = None
    _record: EpochRecord | None = None
    _further: list[tuple[dict[str, np.ndarray], str, np.ndarray]] | None = None
    """Rows of relations that have some on the same side already."""

    @cached_property
    def _bad(self) -> BadChanges:
        return BadChanges(self._policy)

    def insert(self, relation: str, rows: Any) -> None:
        self._add(self._inserted, relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        self._add(self._deleted, relation, rows)

    def _add(self, side: dict[str, np.ndarray], relation: str, rows: Any) -> None:
        """Rows as words. Bad ones are an error, unless the policy lets them pass."""
        if self._end is not None:
            self.require_open()
        if self.keeps_bad:
            rows = self._good(relation, rows)
        words = self._target.encode(relation, rows, None if self._change is None else self.schemas)
        if relation not in side:
            side[relation] = words
        elif self._further is None:
            self._further = [(side, relation, words)]
        else:
            self._further.append((side, relation, words))

    def _good(self, relation: str, rows: Any) -> Any:
        """The rows that are facts; the others are noted."""
        from elastalog.pipeline.files.read import good_facts, place_of

        schema = schema_named(self.schemas, relation)
        if isinstance(rows, str | os.PathLike):
            from elastalog.pipeline.files.read import facts_at

            with self._target.reading():
                (rows, bad, converted), files, _ = facts_at(schema, rows)
            self._bad.add(relation, files, rows.num_rows, bad, converted)
        elif is_spark_rows(rows):
            rows, bad, place = good_spark_rows(schema, rows, self._target.spark)
            self._bad.add(relation, [place], rows.num_rows, bad)
        else:
            rows, bad, converted = good_facts(schema, rows)
            self._bad.add(relation, [place_of(schema)], rows.num_rows, bad, converted)
        return rows

    @property
    def added_rules(self) -> list[str]:
        """The texts of rules that are to be added."""
        return list(self._edits.added)

    def add_rules(self, rules: str | Iterable[str]) -> None:
        texts = _rules_in("rules to add are program text", rules, (str,))
        self._edit(RuleEdits((*self._edits.added, *texts), self._edits.removed))

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        wanted = _rules_in("rules to remove are numbers or texts", rules, (int, str))
        # Numbers mean the rules of now, whatever happens until the commit.
        texts = rule_texts(self._target.program)
        named = (texts[rule - 1] if isinstance(rule, int) and 1 <= rule <= len(texts) else rule for rule in wanted)
        self._edit(RuleEdits(self._edits.added, (*self._edits.removed, *named)))

    def become(self, program: Program) -> None:
        """Another program: the difference of the two, in rules, declarations and facts of the text."""
        found = difference(self._target.program, program)
        if found.removed:
            self.remove_rules(found.removed)
        if found.added:
            self.add_rules(found.added)
        for name, rows in found.deleted.items():
            self.delete(name, rows)

    def _edit(self, edits: RuleEdits) -> None:
        self.require_open()
        if self._target.is_applied(self._source, self._batch):
            return  # it will do nothing, and the rules that it names may be gone
        # Errors in rules come now, where they can still be mended.
        self._change = change_rules(self._target.program, edits)
        self._edits = edits

    @property
    def program(self) -> Program:
        """The program that there will be."""
        return self._target.program if self._change is None else self._change.after

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The relations that facts may belong to: those declared by added rules too."""
        return self._target.schemas if self._change is None else schemas_of(self._change.after.checked)

    def read(self, path: str | os.PathLike[str]) -> None:
        """The changes of a diff file, or of a folder of them."""
        require_place("a diff file is named by its path", path, "give the path of the file, or of a folder of them")
        with self._target.reading():
            from elastalog.pipeline.files.diff import read_diff

            diff = read_diff(Path(path), self.schemas, self.schemas_with, keep_bad=self.keeps_bad)
        self.take(diff, str(path))

    def take(self, diff: Diff, name: str | None = None) -> None:
        """The changes of a diff; errors in its rules say that they are in `name`."""
        with nullcontext() if name is None else noted(f"in {name}"):
            if diff.removed_rules:
                self.remove_rules(diff.removed_rules)
            if diff.added_rules:  # at once, since a line may use what a later one declares
                self.add_rules(diff.added_rules)
        for relation, bad in diff.bad.items():
            self.keep_bad(relation, bad)
        for name, rows in diff.deleted.items():
            self.delete(name, rows)
        for name, rows in diff.inserted.items():
            self.insert(name, rows)

    def keep_bad(self, relation: str, bad: Sequence[BadRow]) -> None:
        """Rows of files that are no facts. Raises ElastalogError if the policy does not let them pass."""
        self.require_open()
        self._bad.add(relation, dict.fromkeys(row.file for row in bad), 0, list(bad))

    def schemas_with(self, added: Iterable[str]) -> Mapping[str, Schema]:
        """The relations that there will be after some rules have been added too."""
        edits = RuleEdits((*self._edits.added, *added), self._edits.removed)
        return schemas_of(change_rules(self._target.program, edits).after.checked)

    def as_update(self) -> Update:
        """The update as it stands."""
        inserted, deleted, change = self._inserted, self._deleted, self._change
        if self._further is not None:
            self._join()
        if change is None:
            return Update(deleted, inserted, self._source, self._batch)
        if change.before is not self._target.program:
            change = self._change = change_rules(self._target.program, self._edits)
        inserted = dict(inserted)
        for fact in change.facts:
            words = self._target.encode(fact.relation, [fact.values], self.schemas)
            known = inserted.get(fact.relation)
            inserted[fact.relation] = words if known is None else np.concatenate([known, words])
        return Update(deleted, inserted, self._source, self._batch, change if change.is_effective else None)

    def _join(self) -> None:
        """One array for each relation on each side."""
        parts: dict[tuple[int, str], list[np.ndarray]] = {}
        for side, name, words in self._further or ():
            parts.setdefault((side is self._deleted, name), []).append(words)
        self._further = None
        for (is_deleted, name), blocks in parts.items():
            side = self._deleted if is_deleted else self._inserted
            side[name] = np.concatenate([side[name], *blocks])

    def commit(self) -> Changes:
        self._commit()
        return self.changes

    def _commit(self) -> None:
        self.commit_by(self._target.commit)

    def commit_by(self, commit: Callable[[Update, Callable[[EpochRecord], None]], object]) -> None:
        """Makes it the next epoch by a function that does what `UpdateTarget.commit` does, and perhaps more."""
        if self._end is not None:
            self.require_open()
        target = self._target
        if self._change is None and not self.keeps_bad:
            commit(self.as_update(), self._committed)
            return
        with target.lock:  # rules are changed from the program of the moment
            update = self.as_update()
            if self.keeps_bad and not target.is_applied(self._source, self._batch):
                self._bad.set_aside()
            with nullcontext() if update.rules is None else update.rules.text.placing():
                commit(update, self._committed)

    def _committed(self, record: EpochRecord) -> None:
        """Called even when Ctrl-C, held back until the commit was done, ends the call of it."""
        self._end = "committed"
        self._record = record
        self._inserted, self._deleted = {}, {}
        if self._change is not None:
            self._edits, self._change = _NO_EDITS, None

    @property
    def changes(self) -> Changes:
        changes = self._target.changes_of(self.stats)
        if self._policy is not FAIL:
            changes.reports = self.reports
        return changes

    @property
    def reports(self) -> tuple[Report, ...]:
        """What was taken of rows and files, by relation, where bad rows may pass; nothing where they are errors."""
        return self._bad.reports

    @property
    def stats(self) -> EpochRecord:
        """What the update did and cost, once committed."""
        return once_committed(self._record)


def _rules_in(told: str, given: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """One or several rules as a tuple. Raises WrongArgument when one is none."""
    advice = "write a rule as in the language: `path(x, y) :- edge(x, y).`"
    rules = listed(told, given, advice, kinds)
    for rule in rules:
        if not isinstance(rule, kinds) or isinstance(rule, bool):
            raise wrong_kind(told, rule, advice)
    return rules
