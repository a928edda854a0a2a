"""Commands for stores: `elastalog init`, `apply`, `undo`, `log`, `diff`, `upgrade`, `export`, `backup` and `verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.cli.exits import AT_FAULT, Console
from elastalog.cli.options import (
    NAME,
    Whole,
    click_option,
    option,
    options_of,
    program_argument,
    report_options,
    standard_input,
    verbosity_options,
)
from elastalog.cli.reports import aligned, print_changed, without_effect
from elastalog.cli.session_options import (
    BAD_ROWS,
    FUNCTORS,
    MAX_BAD_ROWS,
    Moment,
    SessionOptions,
    announcing,
    at_option,
    folder_of,
    functors_option,
    library_options,
    load_program,
    open_session,
    reading,
    session_options,
    show_reports,
    store_argument,
    tell_facts,
    writing,
)
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.messages import counted
from elastalog.folders.addresses import is_address, without_secrets
from elastalog.late import dataclass
from elastalog.planning.logical import shown_names
from elastalog.provenance.fact import Fact
from elastalog.session.settings import Store

if TYPE_CHECKING:
    from elastalog.evaluation.differences import Verification
    from elastalog.pipeline.files.diff import Diff
    from elastalog.pipeline.files.policy import Mode
    from elastalog.session import Session
    from elastalog.session.pending import PendingUpdate
    from elastalog.storage.entries import LogEntry


@click.command()
@store_argument
@program_argument
@session_options
@click.option(
    "--retention", default=1000, show_default=True, type=Whole(1), metavar="N",
    help="Number of past epochs to keep.",
)  # fmt: skip
@report_options
def init(store: str, program: str, retention: int, console: Console, options: SessionOptions) -> None:
    """Make a store of a program and its facts.

    Evaluates PROGRAM over the fact files of a folder and keeps everything in the new folder STORE: program, facts,
    levels, counts. It is then updated with `apply`.

    \b
    Examples:
      elastalog init reach.store reach.dl -F facts
      elastalog apply reach.store monday.diff
    """
    from elastalog.storage.objects.writing import refuse_existing_at

    with announcing(console):
        loaded = load_program(program, console)
        refuse_existing_at(store)
        with open_session(loaded, options, console, store=Store(store, retention)) as session:
            tell_facts(session, console)


SHOW_CHANGES: Final = option("--show-changes", is_flag=True, help="Print all facts that come (+) and go (-).")
PREVIEW: Final = option(
    "--preview", is_flag=True,
    help="Only print what would come and go, the first of each relation; nothing is changed.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """The options of updates of a store."""

    source: str | None = option("--source", metavar="NAME", help="Name of the source of the updates.")
    batch: str | None = option(
        "--batch", metavar="ID",
        help="Id of this update in its source; a batch is applied only once. With several files, the second gets ID.2.",
    )  # fmt: skip
    show_changes: bool = SHOW_CHANGES
    preview: bool = PREVIEW
    bad_rows: Mode = BAD_ROWS
    max_bad_rows: int = MAX_BAD_ROWS
    quarantine: str = option(
        "--quarantine", default=".", type=click.Path(file_okay=False), metavar="DIR",
        help="Folder of the bad rows that are set aside.  [default: the current one]",
    )  # fmt: skip
    functors: str | None = FUNCTORS


class Changes(click.Path):
    """The path of a file of changes; a change itself is told how it is given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value)[:1] == "+" and "(" in value and not Path(value).exists():
            self.fail(f"this is a change, and no file: echo '{value}' | elastalog apply STORE -", param, ctx)
        return super().convert(value, param, ctx)


@click.command()
@store_argument
@click.argument("updates", type=Changes(exists=True, allow_dash=True), nargs=-1, required=True, metavar="UPDATE...")
@options_of(UpdateOptions, "wanted")
@library_options
@report_options
def apply(store: str, updates: tuple[str, ...], wanted: UpdateOptions, console: Console) -> None:
    """Apply updates to a store, each an epoch.

    An UPDATE is a diff file (`+edge(1,2).` or `-edge(3,4).`, one change per line; `+rule: …` and `-rule: …` change
    rules), a table with a column `op` (`.csv`, `.tsv` or `.parquet`), a folder of them, or `-` for standard input.
    Committed updates are durable; if one fails, those before it remain. An update that changes nothing is recorded,
    but makes no epoch.

    \b
    Examples:
      elastalog apply reach.store monday.diff
      elastalog apply reach.store monday.diff --source crawler --batch 2026-11-16
      elastalog apply reach.store monday.diff --preview
      elastalog apply reach.store monday.diff --bad-rows quarantine --quarantine bad/
      echo '+edge(1, 2).' | elastalog apply reach.store - --show-changes
    """
    from elastalog.pipeline.files.policy import BadRows

    policy, batch = BadRows(wanted.bad_rows, wanted.max_bad_rows, wanted.quarantine), wanted.batch
    with announcing(console), writing(store, console, wanted.functors, policy) as session:
        for number, path in enumerate(updates, 1):
            key = batch if batch is None or number == 1 else f"{batch}.{number}"
            pending = session.update(wanted.source, key)
            pending.take(_diff(pending, path), NAME if path == "-" else path)
            show_reports(pending.reports, console)
            _commit(session, pending, path, wanted.preview, wanted.show_changes, console)


def _commit(
    session: Session, pending: PendingUpdate, name: str, preview: bool, show_changes: bool, console: Console
) -> None:
    """Commits or previews an update, and reports it under a name."""
    from elastalog.pipeline.files.policy import warn_of_lost

    update = pending.as_update()
    if preview:
        warn_of_lost(pending.reports)
        changes = session.preview(pending)
        told = f"would change {counted(changes.impact, 'fact')}"
        idle = without_effect(session, update, changes)
        console.say(f"{name}: {told}{idle and f', {idle}'}")
    else:
        changes, stats = pending.commit(), pending.stats
        told = f"{counted(changes.impact, 'change')}, {stats.seconds:.3f} s"
        if stats.is_repeated:
            told = "was applied before"
        elif stats.is_unchanged:
            told = "changes nothing"
        if not stats.is_repeated and (idle := without_effect(session, update, stats)):
            told += f", {idle}"
        console.say(f"epoch {stats.epoch}: {name}: {told}")
    if show_changes or preview:
        print_changed(changes.values(), is_whole=show_changes)


@click.command()
@store_argument
@click.argument("epoch", type=Whole(1), required=False, metavar="[EPOCH]")
@click_option(SHOW_CHANGES, "show_changes")
@click_option(PREVIEW, "preview")
@functors_option
@report_options
def undo(
    store: str, epoch: int | None, preview: bool, show_changes: bool, functors: str | None, console: Console
) -> None:
    """Take back what an epoch of a store did to explicit facts and rules, by default the last: as a new epoch.

    Facts that have come or gone again since stay as they are. Undoing an undoing does again what was undone.

    \b
    Examples:
      elastalog undo reach.store --preview
      elastalog undo reach.store 17
    """
    with announcing(console), writing(store, console, functors) as session:
        number = session.epoch if epoch is None else epoch
        pending = session.engine.undoing(number)
        _commit(session, pending, f"undoing epoch {number}", preview, show_changes, console)


def _diff(pending: PendingUpdate, path: str) -> Diff:
    """The changes in a file, or on standard input for `-`."""
    if path != "-":
        return pending.diff_at(path)
    from elastalog.pipeline.files.diff import parse_diff

    return parse_diff(standard_input(), NAME, pending.schemas, pending.schemas_with, keep_bad=pending.keeps_bad)


@click.command()
@store_argument
@click.option("-n", "--last", type=Whole(1), metavar="N", help="Only the last N epochs.")
@click.option(
    "--fact", metavar="FACT", help="Only the epochs in which FACT appeared, disappeared or changed its level."
)
@report_options
def log(store: str, last: int | None, fact: str | None, console: Console) -> None:
    """List the epochs of a store, the latest first.

    Shows the number and time of each epoch, the explicit facts deleted and inserted, how many facts changed in all, how
    it was computed, how long that took, its source and batch, and the rules that it changed. With `-v`, also what was
    done to every stratum, and why.

    \b
    Examples:
      elastalog log reach.store -n 20
      elastalog log reach.store --fact 'path(1, 4)'
      elastalog log reach.store --format json
    """
    from elastalog.program import shown_rule
    from elastalog.storage.administration import read_log

    if fact is not None:
        with reading(store) as session:
            turns = session.history(fact)
            if not turns:  # it has always held, or never
                console.say(f"note: {session.blame(fact)}")
            for turn in turns[::-1][:last]:
                level = "" if turn.level < 0 else f" at level {turn.level}"
                line = f"{turn.epoch:>6}  {turn.entry.shown_time}  {turn.what}{level}"
                click.echo(json.dumps(asdict(turn), ensure_ascii=False) if console.form == "json" else line)
        return
    entries = read_log(folder_of(store))[::-1][:last]  # no relation is loaded for it
    heads, *lines = _table(entries)
    if console.form != "json":
        click.echo(heads)
    for entry, line in zip(entries, lines, strict=True):
        if console.form == "json":
            click.echo(json.dumps(entry.written(), ensure_ascii=False))
            continue
        click.echo(line)
        for sign, rules in (("-", entry.removed_rules), ("+", entry.added_rules)):
            for rule in rules:
                click.echo(f"        {sign}rule: {shown_rule(rule)}")
        if console.is_verbose:
            for stratum in entry.strata:
                name = shown_names(stratum.relations)
                click.echo(f"    {name}: {stratum.how}, {counted(stratum.derivations, 'derivation')} ({stratum.why})")


def _table(entries: Sequence[LogEntry]) -> list[str]:
    """The header of the table, and a line for each epoch."""

    rows: list[tuple[str, ...]] = [("epoch", "time", "explicit", "changes", "how", "seconds", "source", "batch")]
    for entry in entries:
        how = "+".join(sorted({stratum.how for stratum in entry.strata})) or "nothing"
        explicit = f"-{entry.deleted:,} +{entry.inserted:,}"
        cells = (
            str(entry.epoch),
            entry.shown_time,
            explicit,
            f"{entry.impact:,}",
            how,
            f"{entry.seconds:.3f}",
            *("" if word is None else str(word) for word in (entry.source, entry.batch)),
        )
        rows.append(cells)
    return list(aligned(rows, left=(1, 2, 4, 6, 7)))


@click.command()
@store_argument
@click.argument("first", type=Moment(1), metavar="A")
@click.argument("last", type=Moment(1), required=False, metavar="[B]")
@click.option("--relation", "-r", "wanted", multiple=True, metavar="NAME", help="Only this relation; may be repeated.")
@click.option("--levels", is_flag=True, help="Include facts whose lowest proof changed its height (~).")
@click.option("--explicit", is_flag=True, help="Only explicit facts: what `apply` takes to do the same again.")
@report_options
def diff(
    store: str,
    first: int | str,
    last: int | str | None,
    wanted: tuple[str, ...],
    levels: bool,
    explicit: bool,
    console: Console,
) -> None:
    """Show how epoch B of a store, by default the last, differs from epoch A. Either may be a time.

    Prints the rules and the facts that went (`-`) and came (`+`), in the form of a diff file, new declarations before
    the rules; with `--levels`, also facts whose lowest proof has another height.

    \b
    Examples:
      elastalog diff reach.store 1 17
      elastalog diff reach.store 17 1 --explicit > back.diff
      elastalog diff reach.store 16 17 --levels -r path
    """
    from elastalog.program import shown_rule

    with reading(store) as session:
        epoch_at = session.engine.epoch_at
        found = session.diff(epoch_at(first), epoch_at(last or session.epoch), explicit=explicit)
        if not wanted:
            for sign, texts in (("-", found.removed_rules), ("+", (*found.added_declarations, *found.added_rules))):
                for text in texts:
                    click.echo(f"{sign}rule: {shown_rule(text)}")
        for name in wanted:
            session[name]  # an unknown one is an error
        for name in found:
            if wanted and name not in wanted:
                continue
            difference = found[name]
            print_changed((difference,))
            if levels:
                arity = session.schemas[name].arity
                for *values, was, level in sorted(zip(*difference.moved.to_pydict().values(), strict=True)):
                    click.echo(f"~{Fact(name, tuple(values[:arity]))}. // level {was}, now {level}")


@click.command()
@store_argument
@program_argument
@click_option(SHOW_CHANGES, "show_changes")
@click_option(PREVIEW, "preview")
@functors_option
@report_options
def upgrade(
    store: str, program: str, preview: bool, show_changes: bool, functors: str | None, console: Console
) -> None:
    """Change the program of a store.

    The difference between the program of the store and PROGRAM (rules, declarations, directives such as `.output`,
    facts in the text) is applied as one update: what depends on it is brought up to date, the rest stays. Relations
    that PROGRAM does not declare are kept; one that it declares with other attributes is an error.

    \b
    Examples:
      elastalog upgrade reach.store reach.dl --preview
      elastalog upgrade reach.store reach.dl
    """
    from elastalog.program import difference

    with announcing(console):
        loaded = load_program(program, console)
        with writing(store, console, functors) as session:
            found = difference(session.program, loaded)
            before, changes = session.epoch, session.upgrade(loaded, preview=preview)
            for sign, texts in (("-", found.gone), ("+", found.added)):
                for text in texts:
                    console.say(f"{sign}rule: {text}")
            told = f"changes {counted(changes.impact, 'fact')}" if session.epoch > before else "changes nothing"
            console.say(
                f"would change: {counted(changes.impact, 'fact')}" if preview else f"epoch {session.epoch}: {told}"
            )
            if show_changes or preview:
                print_changed(changes.values(), is_whole=show_changes)


@click.command()
@store_argument
@click.option(
    "-D", "--output", metavar="DIR",
    help="Folder to write to. Without it, files go to the current folder, and one that exists there is an error.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
    help="Form of the files: text, by default with tabs as Soufflé writes it, or Parquet.",
)  # fmt: skip
@click.option("--relation", "-r", "wanted", multiple=True, metavar="NAME", help="Only this relation; may be repeated.")
@click.option(
    "--explicit", is_flag=True, help="Only the explicit facts, as `.input` has them: what `init` and `run` read."
)
@at_option
@verbosity_options
def export(
    store: str, output: str | None, wanted: tuple[str, ...], explicit: bool, at: int | str | None, console: Console
) -> None:
    """Write each relation of a store to a file: text as `run` writes it, in the form that `.output` says if it does.

    \b
    Examples:
      elastalog export reach.store -D out
      elastalog export reach.store -D out --format parquet --at 17
      elastalog export reach.store -D facts --explicit
    """
    with announcing(console), reading(store, at) as session:
        from elastalog.cli.exports import exports
        from elastalog.pipeline.files.write import write_output

        for name in wanted:
            session[name]  # an unknown one is an error
        checked = session.program.checked
        facts = {name: session.explicit(name) if explicit else session[name] for name in wanted or session}
        relations = [checked.relations[name] for name in facts]
        if explicit and not wanted:
            relations = [each for each in relations if len(facts[each.name]) or each.inputs]
        ending = "parquet" if console.form == "parquet" else "facts" if explicit else "csv"
        files = exports(relations, output or "", ending, explicit=explicit)
        for file in files:
            name = file.relation.name
            in_text = [each.values for each in checked.facts if each.relation == name]
            is_all = len(facts[name]) <= len(in_text) and all(tuple(row) in in_text for row in facts[name])
            if file.unread is not None and not is_all:
                console.say(f"warning: `init` and `run` will not read {file.path}: {file.unread}")
            if output is None and file.path.exists():
                raise error("E0538.export", location=str(file.path), path=file.path.name)
        for file in files:  # once it is known that none is in the way
            write_output(file.relation, facts[file.relation.name].to_arrow(), output or "")
            console.say(f"{file.path}: {counted(len(facts[file.relation.name]), 'fact')}")


@click.command()
@store_argument
@click.argument("to", type=click.Path(), metavar="TO")
@report_options
def backup(store: str, to: str, console: Console) -> None:
    """Copy a store into the new folder TO, even while it is in use.

    The copy is a store of its own, at the last epoch that was committed when it was begun, with the same history.

    \b
    Examples:
      elastalog backup reach.store backups/monday
      elastalog verify backups/monday
    """
    from elastalog.storage.administration import back_up
    from elastalog.storage.objects.writing import copied_to

    copy = partial(back_up, folder_of(store))
    epoch = copied_to(to, copy) if is_address(to) else copy(Path(to))
    console.say(f"{without_secrets(to)}: epoch {epoch}")


@click.command()
@store_argument
@click.option("--recompute", is_flag=True, help="Also recompute the program in another way, and compare.")
@functors_option
@report_options
def verify(store: str, recompute: bool, functors: str | None, console: Console) -> None:
    """Check a store.

    Compares every file with its checksum. With `--recompute` the whole fixpoint is recomputed from the explicit facts,
    and facts, levels and counts are compared with what is stored. The recomputation takes another way: joins of sorted
    arrays, without indexes, compiled rounds and updates. Rules that cannot be evaluated that way (choice domains,
    subsumption, equivalences) are listed. Nothing is changed. The exit code is 0 if no difference is found.

    \b
    Examples:
      elastalog verify reach.store
      elastalog verify reach.store --recompute
    """
    with announcing(console):
        from elastalog.storage.administration import check_files

        found, files = check_files(folder_of(store))
        console.show(found)
        if any(diagnostic.severity == "error" for diagnostic in found):
            sys.exit(AT_FAULT)
        told = f"{files} files match their checksums"
        if recompute:
            with reading(store, functors=functors) as session:
                verification = session.verify()
            if not verification.is_exact:
                for line in _faults(verification):
                    click.echo(line, err=True)
                sys.exit(AT_FAULT)
            told += f"; epoch {session.epoch}, computed anew with sorted joins, has the same facts"
            if verification.same_way:
                told += f" ({', '.join(verification.same_way)}: there is one algorithm for these, which was used again)"
        console.say(told)


def _faults(verification: Verification) -> list[str]:
    kinds = (
        ("missing", verification.missing), ("too many", verification.unwanted),
        ("at a wrong level", verification.misplaced),
    )  # fmt: skip
    return [f"{name}: {counted(size, 'fact')} {kind}" for kind, found in kinds for name, size in found.items()]
