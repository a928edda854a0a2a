"""An update of a session, in the making."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from elastalog.diagnostics.arguments import listed, require_one_of, require_place, require_text, wrong_kind
from elastalog.diagnostics.diagnostic import finding, noted, warn_of
from elastalog.evaluation.changes import Changes, RuleTexts, Update
from elastalog.evaluation.epochs import EpochRecord
from elastalog.evaluation.pending import DraftUpdate, once_committed
from elastalog.pipeline.files.policy import FAIL, MODES, BadChanges, BadRow, Mode, Report
from elastalog.pipeline.spark.for_sessions import is_spark_rows, sources
from elastalog.program import Program, RuleChange, RuleEdits, change_rules, difference, directive_texts, rule_texts
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema, schema_named, schemas_of

if TYPE_CHECKING:
    from elastalog.pipeline.files.diff import Diff
    from elastalog.session.updating import Updates

_NO_EDITS: Final = RuleEdits()
_NOTHING: Final = Update()
"""What is left to be committed of an update that was; it takes nothing any more."""


class PendingUpdate(DraftUpdate):
    """An update of a session: made of words, rules checked as they come. After the commit: `changes`, `stats`."""

    def __init__(
        self,
        updates: Updates,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> None:
        """Bad rows are treated as the session says, unless it is said otherwise."""
        self._facts = Update({}, {}, source, batch)
        if source is not None or batch is not None:
            self._facts.batch = batch_id(source, batch)
        self._updates = updates
        self._now = updates.now
        self._end = None
        self._further: list[tuple[Any, str, np.ndarray]] | None = None
        """Rows of relations that have some on the same side already."""
        self._change: RuleChange | None = None
        self.keeps_bad = False
        """Whether bad rows are kept apart, and are no errors."""
        self._policy = updates.policy
        if bad_rows is not None or updates.policy is not FAIL:
            if bad_rows is not None:
                require_one_of("value of `bad_rows`", bad_rows, MODES)
                self._policy = replace(self._policy, policy=bad_rows)
            self.keeps_bad = self._policy.lets_pass

    # What few updates have.
    stands_for: object = None
    """What was asked for, if its facts and rules follow from that and from the epoch: a program, an epoch to undo."""
    is_compared = True
    """Whether another update could come under its batch."""
    _edits = _NO_EDITS
    _asked: tuple[tuple[str, str], ...] = ()
    """The rules to add and to remove, as they were given."""
    _record: EpochRecord | None = None
    is_unused = False
    """Whether nothing has been done with it, though it was given to someone."""

    @cached_property
    def _bad(self) -> BadChanges:
        return BadChanges(self._policy)

    def insert(self, relation: str, rows: Any) -> None:
        self._add(self._facts.inserted, relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        self._add(self._facts.deleted, relation, rows)

    def _add(self, side: Any, relation: str, rows: Any) -> None:
        """Rows as words. Bad ones are an error, unless the policy lets them pass."""
        if self._end is not None:
            self.require_open()
        if self.keeps_bad:
            rows = self._good(relation, rows)
        words = self._now.encode(relation, rows, None if self._change is None else self.schemas)
        if relation not in side:
            side[relation] = words
        elif self._further is None:
            self._further = [(side, relation, words)]
        else:
            self._further.append((side, relation, words))

    def _good(self, relation: str, rows: Any) -> Any:
        """The rows that are facts; the others are noted."""
        from elastalog.pipeline.files.read import facts_given, said_of_text

        schema = schema_named(self.schemas, relation)
        if is_spark_rows(rows):
            rows, bad, place = sources.facts_given(self._now.spark, schema, rows)
            self._bad.add(relation, [place], rows.num_rows, bad)
            return rows
        with self._now.reading():
            (rows, bad, converted), places, _ = facts_given(schema, rows, said_of_text(self.program.checked, relation))
        self._bad.add(relation, places, rows.num_rows, bad, converted)
        return rows

    @property
    def added_rules(self) -> list[str]:
        """The texts of rules that are to be added."""
        return list(self._edits.added)

    def add_rules(self, rules: str | Iterable[str]) -> None:
        texts = _rules_in("rules to add are program text", rules, (str,))
        self._asked = (*self._asked, *(("+", text.strip()) for text in texts))
        self._edit(replace(self._edits, added=(*self._edits.added, *texts)))

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        wanted = _rules_in("rules to remove are numbers or texts", rules, (int, str))
        self._asked = (*self._asked, *(("-", str(rule).strip()) for rule in wanted))
        # Numbers mean the rules of now, whatever happens until the commit.
        texts = rule_texts(self._now.program)
        named = (texts[rule - 1] if isinstance(rule, int) and 1 <= rule <= len(texts) else rule for rule in wanted)
        self._edit(replace(self._edits, removed=(*self._edits.removed, *named)))

    def take_back(self, rules: RuleTexts) -> None:
        """What an epoch did to rules the other way round. A rule that is gone is as good as taken back."""
        asked, now = (*self._asked, ("undo", repr(rules))), self._now.program
        there = {*rule_texts(now), *directive_texts(now.tree)}
        self.remove_rules([rule for rule in rules.added if rule in there])
        self.add_rules(rules.removed)
        self._asked = asked  # whatever is there by now

    def comes_from(self, origin: str) -> None:
        """What the log says of its origin, unless a source was given."""
        if self._facts.batch is None:
            self._facts.source = self._facts.source or origin

    def become(self, program: Program) -> None:
        """Another program: the difference of the two, in rules, declarations, directives and facts of the text. Without
        any, it is an epoch where a store has to learn that it is of this program now."""
        self.stands_for = "program", program.tree.source.text
        found = difference(self._now.program, program)
        if found.gone or found.added or not self._updates.history.is_made_for(program):
            self._edits = replace(self._edits, made_for=program.tree.source.text)
            self.remove_rules(found.gone)
            self.add_rules(found.added)
        for name, rows in found.deleted.items():
            self.delete(name, rows)

    def _edit(self, edits: RuleEdits) -> None:
        self.require_open()
        if self._is_applied:
            return  # it will do nothing, and the rules that it names may be gone
        # Errors in rules come now, where they can still be mended.
        self._change = change_rules(self._now.program, edits)
        self._edits = edits

    @property
    def program(self) -> Program:
        """The program that there will be."""
        return self._now.program if self._change is None else self._change.after

    @property
    def _is_applied(self) -> bool:
        """Whether its batch has been applied before."""
        return self._updates.is_applied(self._facts.source, self._facts.batch)

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The relations that facts may belong to: those declared by added rules too."""
        return self._now.schemas if self._change is None else schemas_of(self._change.after.checked)

    def read(self, path: str | os.PathLike[str]) -> None:
        """The changes of a diff file, or of a folder of them."""
        self.take(self.diff_at(path), str(path))

    def diff_at(self, path: str | os.PathLike[str]) -> Diff:
        """What `read` would take."""
        require_place("a diff file is named by its path", path, "give the path of the file, or of a folder of them")
        with self._now.reading():
            from elastalog.pipeline.files.diff import read_diff

            return read_diff(Path(path), self.schemas, self.schemas_with, keep_bad=self.keeps_bad)

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
        """Rows of files that are not facts. Raises ElastalogError if the policy does not let them pass."""
        self.require_open()
        self._bad.add_of_diff(relation, bad)

    def schemas_with(self, added: Iterable[str]) -> Mapping[str, Schema]:
        """The relations that there will be after some rules have been added too."""
        if self._is_applied:
            return self.schemas  # what they declare is there
        edits = RuleEdits((*self._edits.added, *added), self._edits.removed)
        return schemas_of(change_rules(self._now.program, edits).after.checked)

    def as_update(self) -> Update:
        """The update as it stands."""
        self.is_unused = False
        facts, change = self._facts, self._change
        if self._further is not None:
            self._join()
        if change is None:
            return facts
        if change.before is not self._now.program:
            change = self._change = change_rules(self._now.program, self._edits)
        inserted = dict(facts.inserted)
        for fact in change.facts:
            words = self._now.encode(fact.relation, [fact.values], self.schemas)
            known = inserted.get(fact.relation)
            inserted[fact.relation] = words if known is None else np.concatenate([known, words])
        return replace(facts, inserted=inserted, rules=change if change.is_effective else None)

    @property
    def digest(self) -> str | None:
        """The same for the same facts and rules, in whatever order the facts came; None if it is not compared."""
        if self._facts.batch is None or not self.is_compared:
            return None
        told = self.stands_for
        if told is None:
            facts = []
            for side in (self._facts.inserted, self._facts.deleted):
                rows_of = ((name, Relation.of(self.schemas[name], self._now.dictionary, side[name])) for name in side)
                facts.append(sorted((name, sorted(set(map(repr, rows)))) for name, rows in rows_of if rows))
            told = (facts, self._asked)
        return sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _join(self) -> None:
        """One array for each relation on each side."""
        further, self._further = self._further or (), None
        sides: Any = self._facts.deleted, self._facts.inserted
        for side in sides:
            parts: dict[str, list[np.ndarray]] = {}
            for _, name, words in (one for one in further if one[0] is side):
                parts.setdefault(name, [side[name]]).append(words)
            side.update((name, np.concatenate(blocks)) for name, blocks in parts.items())

    def commit(self) -> Changes:
        self._commit()
        return self.changes

    def commit_by(self, commit: Callable[[Update, Callable[[EpochRecord], None]], object] | None = None) -> None:
        """Makes it the next epoch; by a function that does what `Updates.commit` does, and more, if one is given."""
        if self._end is not None:
            self.require_open()
        commit = commit or self._updates.commit
        facts, self.is_unused = self._facts, False
        if self._change is None and not self.keeps_bad and facts.batch is None:
            commit(facts if self._further is None else self.as_update(), self._committed)
            return
        with self._now.lock:  # rules are changed from the program of the moment
            update = self.as_update()
            update.digest = self.digest
            if self.keeps_bad and not self._is_applied:
                self._bad.set_aside()
            with nullcontext() if update.rules is None else update.rules.text.placing():
                commit(update, self._committed)

    _commit = commit_by

    def _committed(self, record: EpochRecord) -> None:
        """Called even when Ctrl-C, held back until the commit was done, ends the call of it."""
        self._end = "committed"
        self._record = record
        self._facts = _NOTHING
        if self._change is not None:
            self._edits, self._change = _NO_EDITS, None

    @property
    def changes(self) -> Changes:
        changes = self._updates.changes_of(self._record or self.stats)
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


class GivenUpdate(PendingUpdate):
    """An update that warns when it is thrown away with something in it, neither committed nor asked about."""

    is_unused = True

    def __del__(self) -> None:
        if self.is_unused and self._end is None:
            self.is_unused = False
            held = dict.fromkeys([*self._facts.deleted, *self._facts.inserted, *(rule for _, rule in self._asked)])
            frame = sys._getframe().f_back
            at = {} if frame is None or frame.f_globals is globals() else frame.f_globals
            if held and not at.get("__name__", "").startswith("elastalog."):
                warn_of(finding("E0626", severity="warning", held=", ".join(f"`{one}`" for one in held)))


@atexit.register
def _tell_of_unused() -> None:
    """Has those that are left warn while there are modules: a finalizer may come after them."""
    for one in gc.get_referrers(GivenUpdate):
        if isinstance(one, GivenUpdate):
            one.__del__()


def _rules_in(told: str, given: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """One or several rules as a tuple. Raises WrongArgument when one is none."""
    advice = "write a rule as in the language: `path(x, y) :- edge(x, y).`"
    rules = listed(told, given, advice, kinds)
    for rule in rules:
        if not isinstance(rule, kinds) or isinstance(rule, bool):
            raise wrong_kind(told, rule, advice)
    return rules


def batch_id(source: object, batch: object) -> str | int | None:
    """A batch, once it and its source are what they must be."""
    if source is not None:
        facts = "give facts to `db.apply({relation: rows})`; a source is the name of where updates come from"
        require_text("`source` is a text", source, facts)
    if batch is not None and not isinstance(batch, str | int):
        raise wrong_kind("`batch` is a text or a number", batch, "give what identifies the update in its source")
    try:
        f"{source}{batch}".encode()
    except ValueError:  # a lone surrogate, or more digits than Python writes
        advice = "give shorter ones, without lone surrogates"
        raise wrong_kind("`source` and `batch` are short texts", (source, batch), advice) from None
    return batch
