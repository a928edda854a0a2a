"""`elastalog check`"""

from __future__ import annotations

import click

from elastalog.cli.exits import Verbosity, exit_codes, show_diagnostics
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import program_argument, read_program


@click.command()
@program_argument
@format_option
@verbosity_options
def check(program: str, form: str, verbosity: Verbosity) -> None:
    """Check a program and report its faults.

    Looks at the grammar, names, types, variables and strata of PROGRAM, and warns of rules that may grow without end.
    Diagnostics go to standard error. The exit code
    is 0 when the program has no error, 1 otherwise.

    \b
    Examples:
      elastalog check reach.dl
      elastalog check -v reach.dl                   notes too: hints that have no effect
      elastalog check --format json reach.dl        for editors and scripts
    """
    with exit_codes(form, verbosity):
        from elastalog.analysis.growth import warnings_of_growth
        from elastalog.planning.lower import lower

        loaded = read_program(program)
        # A group of an aggregate that only recursion binds comes to light when aggregates are rewritten.
        lower(loaded.checked)
        warnings = (*loaded.warnings, *warnings_of_growth(loaded.checked))
        if warnings or form == "json":
            show_diagnostics(warnings, form, verbosity)
