"""`elastalog verify`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from elastalog.cli.exits import AT_FAULT, Verbosity, exit_codes, show_diagnostics
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.session_options import announcing, functors_option
from elastalog.cli.store_options import folder_of, reading, store_argument

if TYPE_CHECKING:
    from elastalog.evaluation.differences import Verification


@click.command()
@store_argument
@click.option("--recompute", is_flag=True, help="Also recompute the program in another way, and compare.")
@functors_option
@format_option
@verbosity_options
def verify(store: str, recompute: bool, functors: str | None, form: str, verbosity: Verbosity) -> None:
    """Check a store.

    Compares every file with its checksum. With `--recompute` the whole fixpoint is recomputed from the explicit
    facts, and facts, levels and counts are compared with what is stored. It is evaluated in another way than they were
    derived: by joins of sorted arrays, without indexes, compiled rounds and updates. Rules that only one way can
    evaluate (choice domains, subsumption, equivalences) are named. Nothing is changed. The exit code is 0 when all is
    well.

    \b
    Examples:
      elastalog verify reach.store
      elastalog verify reach.store --recompute
    """
    with exit_codes(form, verbosity), announcing(verbosity):
        from elastalog.storage.administration import check_files

        found, files = check_files(folder_of(store))
        show_diagnostics(found, form, verbosity)
        if any(diagnostic.severity == "error" for diagnostic in found):
            sys.exit(AT_FAULT)
        told = f"{files} files are as they were written"
        if recompute:
            with reading(store, functors=functors) as session:
                verification = session.verify()
            if not verification.is_exact:
                for line in _faults(verification):
                    click.echo(line, err=True)
                sys.exit(AT_FAULT)
            told += f"; epoch {session.epoch} is the fixpoint of the rules over its explicit facts, by sorted joins"
            if verification.same_way:
                told += f" ({', '.join(verification.same_way)}: in the way that derived them)"
        if verbosity != "quiet":
            click.echo(told, err=True)


def _faults(verification: Verification) -> list[str]:
    kinds = (
        ("missing", verification.missing), ("too many", verification.unwanted),
        ("at a wrong level", verification.misplaced),
    )  # fmt: skip
    return [f"{name}: {size:,} facts {kind}" for kind, found in kinds for name, size in found.items()]
