"""`elastalog run`"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.exits import INTERRUPTED, Verbosity, exit_codes, show_diagnostics
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.outputs import write_outputs
from elastalog.cli.preprocessor_options import preprocessor_options
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session, session_options
from elastalog.cli.souffle_options import souffle_options, with_pragmas, without_warnings
from elastalog.cli.standard_output import checked_output

if TYPE_CHECKING:
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.program import Program
    from elastalog.session import Session

_TO_TERMINAL = "-"


@click.command()
@click.argument("program", type=click.Path(), required=False, metavar="PROGRAM")
@preprocessor_options
@session_options
@click.option(
    "-D", "--output", "--output-dir", "output", default=".", metavar="DIR",
    help="Folder of the output files, or - for standard output.  [default: the current one]",
)  # fmt: skip
@click.option(
    "--stats", is_flag=False, flag_value=_TO_TERMINAL, metavar="[FILE.json]",
    help="Print what rules and relations cost, or write it to FILE.json.",
)  # fmt: skip
@format_option
@verbosity_options
@souffle_options
def run(
    program: str | None,
    output: str,
    stats: str | None,
    form: str,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Evaluate PROGRAM over the fact files of a folder and write its outputs.

    Every relation with `.input` is read from NAME.facts (tab-separated; also .csv, .tsv, .parquet, .jsonl, .gz), every
    relation with `.output` is written to NAME.csv, as Soufflé does. Files appear whole or not at all.

    \b
    Examples:
      elastalog run reach.dl -F facts -D out
      elastalog run reach.dl -F facts -D - | head
      elastalog run reach.dl -F facts -D out --stats
      elastalog run reach.dl --max-memory 2G --timeout 5m --bad-rows quarantine
    """
    if verbosity == "normal" and without_warnings():
        verbosity = "quiet"
    program, stats = _told_apart(program, stats)
    is_written = False
    try:
        with exit_codes(form, verbosity), checked_output():
            loaded = _with_demand(with_pragmas(load_program(program, form, verbosity)))
            loaded = _without_unused_inputs(loaded, options["facts"], form, verbosity)
            with announcing(verbosity):
                session = _evaluate(loaded, SessionOptions(**options), output, form, verbosity)
            is_written = True
            doubts: list[Diagnostic] = []
            files = write_outputs(session, output, options["jobs"], doubts.append)
            _warn(doubts, form, verbosity)
            if verbosity != "quiet" and stats is None and not _has_output(loaded):
                click.echo(f"nothing was written: {program} has no `.output`, nor `.printsize`", err=True)
            if stats == _TO_TERMINAL:
                _print_profile(session)
            elif stats is not None:
                _write_profile(session, Path(stats))
            if verbosity == "verbose" or (verbosity == "normal" and sys.stderr.isatty()):
                click.echo(_summary(session, files), err=True)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            done = "files already written are whole" if is_written else "nothing was written"
            click.echo(f"interrupted: {done}", err=True)
        raise


def _told_apart(program: str | None, stats: str | None) -> tuple[str, str | None]:
    """`--stats PROGRAM` means the table: only what ends in `.json` is taken for its file."""
    if stats is not None and stats != _TO_TERMINAL and not stats.endswith(".json"):
        if program is not None:
            raise click.BadParameter(f"'{stats}' does not end in .json.", param_hint="'--stats'")
        program, stats = stats, _TO_TERMINAL
    if program is None:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    return program, stats


def _with_demand(program: Program) -> Program:
    """The program as it asks to be evaluated: with `magic`, only what its outputs need is derived."""
    from dataclasses import replace

    from elastalog.planning.demand import asked_by_program, outputs_of, with_demand

    wanted = asked_by_program(program.checked)
    if wanted is None:
        return program
    return replace(program, checked=with_demand(program.checked, outputs_of(program.checked), wanted))


def _without_unused_inputs(program: Program, facts: str, form: str, verbosity: Verbosity) -> Program:
    """The program without the inputs that no output needs and that have no file: Soufflé does not read such."""
    from dataclasses import replace

    from elastalog.analysis.stratify import needed_for
    from elastalog.pipeline.files.loading import inputs_of, is_missing, not_needed
    from elastalog.planning.demand import outputs_of

    checked = program.checked
    needed = needed_for(checked, outputs_of(checked))
    unused = [r for r in inputs_of(checked) if needed and r.name not in needed and is_missing(r, facts)]
    if not unused:
        return program
    show_diagnostics([not_needed(unused)], form, verbosity)
    kept = {r.name: replace(r, directives=tuple(d for d in r.directives if d.kind != "input")) for r in unused}
    return replace(program, checked=replace(checked, relations={**checked.relations, **kept}))


def _evaluate(program: Program, options: SessionOptions, output: str, form: str, verbosity: Verbosity) -> Session:
    from dataclasses import replace

    from elastalog.cli.progress import progress_shown
    from elastalog.planning.needed_groups import may_await_groups

    if options.strategy == "elastic" and options.levels == "local" and not may_await_groups(program.checked):
        # Nothing is updated here: what updates need of every fact, a third of the memory, need not be kept.
        options = replace(options, strategy="recompute")
    with progress_shown(program.checked, verbosity) as report:
        quarantine = "." if output == "-" else output
        return open_session(program, options, form=form, verbosity=verbosity, quarantine=quarantine, on_progress=report)


def _has_output(program: Program) -> bool:
    directives = (one for relation in program.checked.relations.values() for one in relation.directives)
    return any(one.kind in ("output", "printsize") for one in directives)


def _warn(doubts: list[Diagnostic], form: str, verbosity: Verbosity) -> None:
    """Symbols that break their line are written as Soufflé writes them: whoever reads the file has to know."""
    from dataclasses import replace

    if doubts:
        show_diagnostics([replace(doubt, severity="warning") for doubt in doubts], form, verbosity)


def _print_profile(session: Session) -> None:
    from elastalog.cli.profile import profile_lines

    for line in profile_lines(session.statistics()):
        click.echo(line, err=True)


def _write_profile(session: Session, path: Path) -> None:
    from elastalog.cli.profile import profile_json
    from elastalog.pipeline.files.atomic import replacing

    with replacing(path) as out:
        out.write(profile_json(session).encode() + b"\n")


def _summary(session: Session, files: list[Path]) -> str:
    from elastalog.cli.profile import latest_entry

    text = f"{sum(len(session[name]) for name in session):,} facts"
    entry = latest_entry(session)
    text += f", {entry.derivations:,} derivations, evaluated in {entry.seconds:.2f} s"
    return f"{text}; {len(files)} file{'' if len(files) == 1 else 's'} written" if files else text
