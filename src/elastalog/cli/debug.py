"""`elastalog debug`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from elastalog.analysis.findings import counted
from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.limits import duration
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import program_argument
from elastalog.cli.session_options import SessionOptions, announcing, session_options, show_reports
from elastalog.cli.store_options import at_option, is_store, opened_at, writing

if TYPE_CHECKING:
    from elastalog.debugging.answers import Answer


@click.command()
@program_argument
@session_options
@click.option(
    "--update", "updates", multiple=True, type=click.Path(exists=True), metavar="FILE",
    help="Diff file that is applied after the facts, as an epoch; may be repeated. A store has its own updates.",
)  # fmt: skip
@click.option("--unwanted", multiple=True, metavar="FACT", help="A fact that holds and should not; may be repeated.")
@click.option("--missing", multiple=True, metavar="FACT", help="A fact that should hold and does not; may be repeated.")
@click.option(
    "--reject", multiple=True, metavar="ELEMENT",
    help="Part of the update that must stay, as +edge(1,2); may be repeated.",
)  # fmt: skip
@click.option(
    "--over", type=click.Choice(["update", "facts"]),
    help="Undo part of an update, or change any explicit facts.  [default: the update, if there is one]",
)  # fmt: skip
@click.option(
    "--candidate", "candidates", multiple=True, metavar="FACT",
    help="A fact that may be inserted (-edge(1,2): deleted) for the missing ones; may be repeated."
    "  [default: what why-not finds]",
)  # fmt: skip
@click.option("--localise", is_flag=True, help="Show what causes the faults instead of what to undo.")
@click.option("--blame", metavar="FACT", help="Show in which epoch a fact last appeared or disappeared, and why.")
@click.option(
    "--epochs", nargs=2, type=click.IntRange(1), metavar="A B", help="Between these epochs.  [default: the last update]"
)
@click.option(
    "--time-limit", metavar="TIME", default="60s", show_default=True, callback=duration, help="Time for the search."
)
@at_option
@click.option("--apply", "applies", is_flag=True, help="Apply the repair to the store, as a new epoch.")
@click.option("--proofs", is_flag=True, help="Show the proofs that connect the elements with the faults.")
@format_option
@verbosity_options
def debug(
    program: str,
    updates: tuple[str, ...],
    unwanted: tuple[str, ...],
    missing: tuple[str, ...],
    reject: tuple[str, ...],
    over: str | None,
    candidates: tuple[str, ...],
    localise: bool,
    blame: str | None,
    epochs: tuple[int, int] | None,
    time_limit: float,
    at: int | None,
    applies: bool,
    proofs: bool,
    form: str,
    verbosity: Verbosity,
    **options: Any,
) -> None:
    """Find the smallest part of an update whose undoing removes faults, or the fewest explicit facts to change.

    Faults are facts that came with the update and are unwanted, or went and are missing. The part that is shown has
    been tried. PROGRAM may be a store; then its last epoch is looked at, or what happened between two; with --at, as if
    an earlier epoch were the last. Without an update, or with --over facts, explicit facts are looked at, whenever they
    came: those to delete, for missing facts those to insert. An unwanted fact may be a pattern, as path(1, _).

    \b
    Examples:
      elastalog debug reach.dl -F facts --update monday.diff --unwanted 'path(1, 4)'
      elastalog debug reach.dl -F facts --update monday.diff --missing 'path(2, 3)' --localise --proofs
      elastalog debug reach.store --unwanted 'path(1, 4)' --reject '+edge(3, 4)'
      elastalog debug reach.store --unwanted 'path(1, 4)' --apply
      elastalog debug reach.store --blame 'path(1, 4)'
      elastalog debug reach.store --unwanted 'path(1, 4)' --at 17
      elastalog debug reach.dl -F facts --unwanted 'path(1, _)'
      elastalog debug reach.dl -F facts --missing 'path(1, 9)' --candidate 'edge(4, 9)' --candidate 'edge(5, 9)'
    """
    if is_store(program):
        if updates:
            raise click.UsageError("--update: a store has its own updates; `elastalog apply` adds one.")
    elif not updates and (blame is not None or localise or over == "update"):
        raise click.UsageError("Missing option '--update': there is nothing to debug without one.")
    if blame is not None and (unwanted or missing or localise or reject or epochs or over or candidates):
        raise click.UsageError("--blame is a question of its own: give no faults and no other options of the search.")
    if localise and (reject or over or candidates):
        raise click.UsageError("--reject, --over and --candidate are about suggestions; leave them out, or --localise.")
    if applies and (not is_store(program) or at is not None or blame is not None or localise):
        raise click.UsageError("--apply is for the repair of a store: leave out --at, --blame and --localise.")
    chosen = SessionOptions(**options)
    with (
        exit_codes(form, verbosity),
        announcing(verbosity),
        writing(program, form, verbosity, chosen.functors)
        if applies
        else opened_at(program, at, chosen, form, verbosity) as session,
    ):
        for path in updates:
            show_reports(session.apply(path).reports, form, verbosity)
        if blame is not None:
            found = session.blame(blame)
            click.echo(found.to_json() if form == "json" else str(found))
            return
        settings: Any = {"epochs": epochs, "time_limit": time_limit, "on_progress": _news(verbosity)}
        answer: Answer
        if localise:
            answer = session.localise(unwanted, missing, **settings)
            click.echo(_shown(answer, form, proofs))
        else:
            answer = repair = session.suggest(
                unwanted, missing, reject, over=over, candidates=candidates or None, **settings
            )
            click.echo(_shown(answer, form, proofs))
            if applies:
                changes = repair.apply()
                if verbosity != "quiet":
                    click.echo(f"epoch {session.epoch}: {counted(changes.impact, 'change')}", err=True)
        _tell_time(answer, verbosity)


def _news(verbosity: Verbosity) -> Any:
    if verbosity == "verbose" or (verbosity == "normal" and sys.stderr.isatty()):
        return lambda message: click.echo(message, err=True)
    return None


def _shown(answer: Answer, form: str, proofs: bool) -> str:
    if form == "json":
        return answer.to_json()
    parts = [str(answer)]
    if proofs:
        parts += [str(proof) for proof in answer.proofs]
    return "\n\n".join(parts)


def _tell_time(answer: Answer, verbosity: Verbosity) -> None:
    """Where the time went, for those who want to know."""
    if verbosity == "verbose":
        spent = answer.seconds
        click.echo(
            f"provenance {spent.provenance:.3f} s, 0/1 programs {spent.solving:.3f} s,"
            f" {spent.number_of_trials} trials {spent.trials:.3f} s",
            err=True,
        )
