"""Commands that change facts and rules, from `insert` to `commit`, and those that look at a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from elastalog.analysis.pattern import parse_selection
from elastalog.analysis.values import sort_key
from elastalog.cli.reports import without_effect
from elastalog.cli.shell_commands.state import Command, Piece, ShellState, require_some, size_of, split
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.messages import counted
from elastalog.pipeline.files.diff import Diff, read_diff, update_files
from elastalog.provenance.fact import Fact

if TYPE_CHECKING:
    from elastalog.analysis.program import Value
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.session.pending import PendingUpdate

_SIGNS: Final[dict[str, Literal["+", "-"]]] = {"insert": "+", "delete": "-"}


def _add_changes(word: str, state: ShellState, arguments: Piece) -> None:
    """`insert R(1), R(2), delete S(3)`: all of them, or none when one is wrong."""
    require_some(word, arguments, "a fact", f"write it as `{word} edge(1, 2)`")
    changes: list[Diff] = []
    for written in split(arguments, ","):
        piece = written.trimmed()
        first, rest = piece.after_word()
        if first in _SIGNS and not rest.text.startswith("("):
            word, piece = first, rest
        if not piece.text:
            raise piece.error("E0652", "a fact is missing here", advice="remove the comma, or add a fact after it")
        with piece.placing():
            changes.append(_change(_SIGNS[word], state, piece))
    state.pending += changes


def _change(sign: Literal["+", "-"], state: ShellState, piece: Piece) -> Diff:
    """A fact to insert or delete, or all explicit facts to delete that fit a pattern."""
    if sign == "-" and not state.changes_rules:
        pattern = parse_selection(piece.text, state.session.program.checked)
        if not pattern.is_fact:
            found = [values for values in state.session.explicit(pattern.relation) if pattern.fits(values)]
            if not found:
                raise piece.error("E0652", "no explicit fact fits this", advice="`query` shows which facts there are")
            if state.is_interactive:
                state.say(f"{counted(len(found), 'deletion')} pending")
            return Diff(deleted={pattern.relation: found})
    relation, values = state.fact(piece.text)
    facts = {relation: [values]}
    return Diff(facts) if sign == "+" else Diff(deleted=facts)


def _load(state: ShellState, arguments: Piece) -> None:
    require_some("load", arguments, "a file", "write `load update.diff`")
    text = arguments.text
    path = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if Path(path).is_dir() and not update_files(path):
        raise arguments.error(
            "E0652", "there is no diff file in this folder", advice="name one, as in `load update.diff`"
        )
    update = state.update()
    with state.session.engine.reading():
        diff = read_diff(Path(path), update.schemas, update.schemas_with, keep_bad=update.keeps_bad)
    _add(state, diff)
    if state.is_interactive:
        state.say(f"{counted(size_of(diff), 'change')} pending from {path}")


def _add_rule(state: ShellState, arguments: Piece) -> None:
    require_some("addrule", arguments, "a rule", "write it as `addrule path(x, y) :- edge(x, y).`")
    text = arguments.text
    is_declaration = text.startswith(".")
    _add(state, Diff(added_rules=(text if is_declaration or text.endswith(".") else f"{text}.",)))


def _remove_rule(state: ShellState, arguments: Piece) -> None:
    """`removerule 3` or `removerule path(x, y) :- edge(x, y).`"""
    from elastalog.program import rule_texts

    text = arguments.text
    rules = rule_texts(state.session.program)
    if not text:
        raise arguments.error(
            "E0652", "`removerule` needs a rule", advice="write `removerule 3`; `rule N` shows a rule"
        )
    if text.isdecimal():
        if not 1 <= int(text) <= len(rules):
            raise arguments.error("E0652", "there is no such rule", advice=f"give a number from 1 to {len(rules)}")
        text = rules[int(text) - 1]
    _add(state, Diff(removed_rules=(text,)))


def _add(state: ShellState, diff: Diff) -> None:
    """All of it, or nothing when the update would be wrong with it."""
    state.pending.append(diff)
    try:
        state.update()
    except ElastalogError:
        state.pending.pop()
        raise


def _start(state: ShellState, arguments: Piece) -> None:
    _refuse_pending(state, arguments)
    state.is_started = True


def _commit(state: ShellState, arguments: Piece) -> None:
    if arguments.text not in ("", "dump_changes"):
        raise arguments.error("E0652", "`commit` takes `dump_changes` or nothing", advice="write `commit`")
    update = state.update()
    _committed(state, update, bool(arguments.text))


def _committed(state: ShellState, update: PendingUpdate, is_whole: bool = False) -> None:
    """Commits an update, and shows what it changed: the first facts of each relation, or, if `is_whole`, all."""
    wanted = update.as_update()
    changes = update.commit()
    if not update.stats.is_unchanged:
        state.changes, state.last = changes, update.stats
    state.forget_pending()
    if is_whole or not state.is_quiet:
        state.say_all(change_lines(changes, None if is_whole else "changes"))
        state.say(_summary(update.stats, without_effect(state.session, wanted, update.stats), state))


def _undo(state: ShellState, arguments: Piece) -> None:
    _refuse_pending(state, arguments)
    if arguments.text and not arguments.text.isdecimal():
        raise arguments.error("E0652", "an epoch is a number", advice="write `undo 3`; `log` lists the epochs")
    epoch = int(arguments.text) if arguments.text else state.last
    if epoch is None:
        advice = "`undo` takes back what `commit` or `apply` did here, `undo 3` an earlier epoch"
        raise arguments.error("E0652", "there is nothing to undo", advice=advice)
    with arguments.placing():
        update = state.session.engine.undoing(epoch)
    _committed(state, update)


def _refuse_pending(state: ShellState, arguments: Piece) -> None:
    if state.pending or state.is_started:
        advice = "end it with `commit`, or drop it with `rollback`"
        raise arguments.error("E0652", "an update is already under way", advice=advice)


def _apply(state: ShellState, arguments: Piece) -> None:
    from elastalog.session.repair import fill_undoing

    suggestion = state.debugging.suggestion
    if suggestion is None:
        raise arguments.error("E0652", "there is no suggestion to apply", advice="ask with `suggest +path(1, 4)` first")
    _refuse_pending(state, arguments)
    update = state.session.update()
    fill_undoing(update, suggestion, state.session.epoch, state.session.log)
    state.debugging.suggestion = None
    _committed(state, update)


def _preview(state: ShellState, arguments: Piece) -> None:
    if arguments.text not in ("", "all"):
        raise arguments.error("E0652", "`preview` takes `all` or nothing", advice="write `preview`")
    update = state.update()
    changes = state.session.preview(update)
    idle = without_effect(state.session, update.as_update(), changes)
    state.say_all(change_lines(changes, None if arguments.text else "preview all"))
    state.say(f"it would change {counted(changes.impact, 'fact')}{idle and f', {idle}'}")


def _summary(record: EpochRecord, idle: str, state: ShellState) -> str:
    inserted = sum(len(came) for came, _ in record.changes.values())
    deleted = sum(len(went) for _, went in record.changes.values())
    parts = [f"epoch {record.epoch}: {inserted:,} inserted, {deleted:,} deleted"]
    if record.is_unchanged:
        parts = [f"still epoch {record.epoch}: nothing changed"]
    if record.rules:
        parts.append(f"{counted(len(record.rules.added), 'rule')} added, {len(record.rules.removed):,} removed")
    if idle:
        parts.append(idle)
    if not state.is_interactive:
        return ", ".join(parts)
    how = Counter(stratum.how for stratum in record.work.strata)
    strata = ", ".join(f"{number} {_HOW.get(name, name)}" for name, number in how.items()) or "none touched"
    return f"{', '.join(parts)} ({state.strategy}; strata: {strata}; {record.seconds * 1000:.1f} ms)"


_HOW: Final = {
    "update": "updated",
    "recompute": "recomputed",
    "refold": "aggregated again",
    "switch": "abandoned and recomputed",
}


def _rollback(state: ShellState, arguments: Piece) -> None:
    state.forget_pending()


def _pending(state: ShellState, arguments: Piece) -> None:
    for diff in state.pending:
        for sign, texts in (("-", diff.removed_rules), ("+", diff.added_rules)):
            state.say_all(f"{sign}rule: {text}" for text in texts)
        for sign, facts in (("-", diff.deleted), ("+", diff.inserted)):
            for name, rows in facts.items():
                state.say_all(f"{sign}{Fact(name, values)}" for values in _values(rows))


def _values(rows: Any) -> Iterable[tuple[Value, ...]]:
    """The facts that are staged of a relation, tuples or an Arrow table."""
    if isinstance(rows, list):
        return rows
    return zip(*(column.to_pylist() for column in rows.columns), strict=True) if rows.columns else [()] * len(rows)


def _changes(state: ShellState, arguments: Piece) -> None:
    if state.changes is not None:
        state.say_all(change_lines(state.changes))


def _log(state: ShellState, arguments: Piece) -> None:
    state.say_all(map(str, reversed(state.session.log())))


MOST_CHANGES = 40
"""Changes that are all shown, whatever their relations."""
FIRST = 5
"""Changes that are shown of each relation when there are more."""


def change_lines(changes: Changes, all_with: str | None = None) -> Iterator[str]:
    """`+fact` and `-fact` for what came and went, in the order of relations and values. Of many only the first of each
    relation, if another command shows all."""
    most = None if all_with is None or changes.impact <= MOST_CHANGES else FIRST
    for name in sorted(changes):
        changed = [(values, "-") for values in changes[name].deleted]
        changed += [(values, "+") for values in changes[name].inserted]
        changed.sort(key=lambda change: sort_key(change[0]))
        for values, sign in changed[:most]:
            yield f"{sign}{Fact(name, values)}"
        if most is not None and len(changed) > most:
            yield f"… and {len(changed) - most:,} more of `{name}`; `{all_with}` shows all"


def _forecast(state: ShellState, arguments: Piece) -> None:
    forecasts = state.session.forecast(state.update())
    for forecast in forecasts:
        state.say(str(forecast))
    if not forecasts:
        state.say("nothing would change")


UPDATES: Final = (
    Command("insert R(1, 2), R(3, 4)", "add explicit facts to the pending update", partial(_add_changes, "insert")),
    Command(
        "delete R(1, 2), R(3, 4)",
        "remove explicit facts in the pending update, for R(1, _) all that fit; a fact both inserted and deleted ends "
        "up present",
        partial(_add_changes, "delete"),
    ),
    Command("addrule R(x) :- S(x).", "add a rule, or a `.decl`, to the pending update", _add_rule),
    Command("removerule N|RULE", "remove a rule, by its number or its text, in the pending update", _remove_rule),
    Command("load FILE", "add the changes of a diff file to the pending update", _load, arguments="files"),
    Command("start", "begin an update; optional, since changes wait for `commit` anyway", _start),
    Command("commit [dump_changes]", "apply the pending update and show what changed", _commit),
    Command("preview [all]", "show what the pending update would change", _preview),
    Command("rollback", "drop the pending update", _rollback),
    Command("apply", "do what was suggested, as a new update; for a file there are `load` and `commit`", _apply),
    Command(
        "undo [N]",
        "take back the latest update that was committed here (an `undo`, too), or epoch N, as a new update",
        _undo,
    ),
    Command("pending", "show the pending update", _pending),
    Command("changes", "show what the latest epoch changed", _changes),
    Command("log", "list the epochs, the latest first", _log),
    Command("forecast", "show what the strategy would choose for the pending update", _forecast),
)
