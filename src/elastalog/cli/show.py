"""`elastalog show`"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from elastalog.cli.exits import exit_codes
from elastalog.cli.options import format_option, program_argument, verbosity_of, verbosity_options


def _tokens(path: str) -> Iterator[str]:
    from elastalog.diagnostics.source import Source
    from elastalog.program import read_program_text
    from elastalog.syntax.tokens import tokenize

    source = Source(path, read_program_text(path))
    tokens, diagnostics = tokenize(source)
    for kind, text, span in tokens:
        line, column = source.locate(span.start)
        yield f"{line}:{column}\t{kind}\t{text}"
    _fail_on(diagnostics)


def _tree(path: str) -> Iterator[str]:
    from elastalog.cli.outline import outline
    from elastalog.diagnostics.source import Source
    from elastalog.program import read_program_text
    from elastalog.syntax.parser import parse

    tree, diagnostics = parse(Source(path, read_program_text(path)))
    yield from outline(tree)
    _fail_on(diagnostics)


def _checked(path: str) -> Iterator[str]:
    from elastalog.analysis.listing import list_program
    from elastalog.program import Program

    yield from list_program(Program.load(path).checked)


def _strata(path: str) -> Iterator[str]:
    from elastalog.analysis.listing import list_strata
    from elastalog.program import Program

    yield from list_strata(Program.load(path).checked)


def _plan(path: str) -> Iterator[str]:
    from elastalog.planning.listing import list_plans
    from elastalog.planning.lower import lower
    from elastalog.planning.order import NoStatistics
    from elastalog.program import Program

    yield from list_plans(lower(Program.load(path).checked), NoStatistics())


def _plan_on_spark(path: str) -> Iterator[str]:
    from elastalog.planning.decompose import decomposition_report
    from elastalog.program import Program

    yield from decomposition_report(Program.load(path).checked)


STAGES: Final[dict[str, Callable[[str], Iterator[str]]]] = {
    "tokens": _tokens,
    "tree": _tree,
    "checked": _checked,
    "strata": _strata,
    "plan": _plan,
}
"""The lines that each stage shows of the program at a path."""


def _fail_on(diagnostics: tuple[object, ...]) -> None:
    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

    found = [diagnostic for diagnostic in diagnostics if isinstance(diagnostic, Diagnostic)]
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise ElastalogError(found)


def _facts(store: str, wanted: str) -> Iterator[str]:
    """The facts of a relation of a store, `NAME` or `NAME@EPOCH`."""
    from elastalog.cli.store_options import fact_lines, reading

    name, _, epoch = wanted.partition("@")
    if epoch and not epoch.isdecimal():
        raise click.UsageError(f"'{wanted}' is not NAME or NAME@EPOCH.")
    with reading(store, int(epoch) if epoch else None) as session:
        yield from fact_lines(session[name])


@click.command()
@program_argument
@click.argument("relation", required=False)
@click.option("--stage", type=click.Choice(list(STAGES)), default="checked", show_default=True, help="What to show.")
@click.option(
    "--engine", default="local", show_default=True, type=click.Choice(["local", "spark"]),
    help="Whose plan to show: with spark, which strata fall apart into tasks, and why the others do not.",
)  # fmt: skip
@format_option
@verbosity_options
@click.pass_context
def show(
    ctx: click.Context, program: str, relation: str | None, stage: str, engine: str, form: str, verbose: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Show the stages of a program, or a relation of a store.

    Prints what becomes of PROGRAM on its way from text to strata. If PROGRAM is a store: of the program in it, or the
    facts of RELATION, written `NAME` or `NAME@EPOCH`.

    \b
    Stages:
      tokens    the words of the text, with line and column
      tree      what was written, as a tree
      checked   what it means: one head and one conjunction a rule, every variable typed
      strata    the order in which relations are evaluated
      plan      how each version of a rule is joined, before the sizes of relations are known

    \b
    Examples:
      elastalog show reach.dl --stage strata
      elastalog show reach.dl --stage tokens | head
      elastalog show reach.dl --stage plan --engine spark
      elastalog show reach.store path@17
    """
    with exit_codes(form, verbosity_of(ctx, verbose, quiet)):
        from elastalog.cli.store_options import is_store

        if is_store(program):
            if relation is not None:
                for line in _facts(program, relation):
                    click.echo(line)
                return
            program = str(Path(program) / "program.dl")
        elif relation is not None:
            raise click.UsageError(f"'{program}' is not a store, so it has no relation to show.")
        lines = _plan_on_spark if (stage, engine) == ("plan", "spark") else STAGES[stage]
        for line in lines(program):
            click.echo(line)
