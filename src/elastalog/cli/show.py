"""`elastalog show`"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import program_argument, read_source

if TYPE_CHECKING:
    from elastalog.diagnostics.source import Source


def _tokens(source: Source) -> Iterator[str]:
    from elastalog.syntax.tokens import tokenize

    tokens, diagnostics = tokenize(source)
    for kind, text, span in tokens:
        place = source.place(span.start) if source.pieces else source.place(span.start).removeprefix(f"{source.name}:")
        yield f"{place}\t{kind}\t{text}"
    _fail_on(diagnostics)


def _tree(source: Source) -> Iterator[str]:
    from elastalog.cli.outline import outline
    from elastalog.syntax.parser import parse

    tree, diagnostics = parse(source)
    yield from outline(tree)
    _fail_on(diagnostics)


def _flat(source: Source) -> Iterator[str]:
    from elastalog.analysis.check import flatten
    from elastalog.syntax.parser import parse
    from elastalog.syntax.printer import print_item

    tree, diagnostics = parse(source)
    _fail_on(diagnostics)
    tree, diagnostics = flatten(tree)
    _fail_on(diagnostics)
    for item in tree.items:
        yield print_item(item)


def _text(source: Source) -> Iterator[str]:
    from elastalog.syntax.parser import parse

    yield source.text.removesuffix("\n")
    _fail_on(parse(source)[1])


def _checked(source: Source) -> Iterator[str]:
    from elastalog.analysis.listing import list_program
    from elastalog.program import Program

    yield from list_program(Program.of(source).checked)


def _magic(source: Source) -> Iterator[str]:
    from elastalog.analysis.listing import list_program
    from elastalog.planning.demand import outputs_of, with_demand
    from elastalog.program import Program

    checked = Program.of(source).checked
    yield from list_program(with_demand(checked, outputs_of(checked)))


def _strata(source: Source) -> Iterator[str]:
    from elastalog.analysis.listing import list_strata
    from elastalog.planning.listing import how_improved
    from elastalog.planning.lower import lower
    from elastalog.program import Program

    program = Program.of(source).checked
    strata = lower(program).strata if program.subsumptions else ()
    yield from list_strata(program, {s.relations[0]: how_improved(s) for s in strata if s.dominance})


def _plan(source: Source) -> Iterator[str]:
    from elastalog.planning.equivalences import kept_as_classes
    from elastalog.planning.listing import list_plans
    from elastalog.planning.lower import lower
    from elastalog.planning.order import NoStatistics
    from elastalog.program import Program

    program = Program.of(source).checked
    lowered = lower(program, equivalences=kept_as_classes(program, can_merge=True))
    yield from list_plans(lowered, NoStatistics())


def _plan_on_spark(source: Source) -> Iterator[str]:
    from elastalog.planning.decompose import decomposition_report
    from elastalog.program import Program

    yield from decomposition_report(Program.of(source).checked)


STAGES: Final[dict[str, Callable[[Source], Iterator[str]]]] = {
    "text": _text,
    "tokens": _tokens,
    "tree": _tree,
    "flat": _flat,
    "checked": _checked,
    "magic": _magic,
    "strata": _strata,
    "plan": _plan,
}
"""The lines that each stage shows of a program."""


def _fail_on(diagnostics: tuple[object, ...]) -> None:
    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

    found = [diagnostic for diagnostic in diagnostics if isinstance(diagnostic, Diagnostic)]
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise ElastalogError(found)


def _facts(store: str, wanted: str) -> Iterator[str]:
    """The facts of a relation of a store, `NAME` or `NAME@EPOCH`."""
    from elastalog.cli.fact_text import fact_lines
    from elastalog.cli.store_options import reading

    name, _, epoch = wanted.partition("@")
    if epoch and not epoch.isdecimal():
        raise click.UsageError(f"'{wanted}' is not NAME or NAME@EPOCH.")
    with reading(store, int(epoch) if epoch else None) as session:
        yield from fact_lines(session[name])


def _source(path: str, is_store: bool) -> Source:
    """The program in a file, or that of the last epoch of a store."""
    from elastalog.cli.store_options import reading

    if not is_store:
        return read_source(path)
    with reading(path) as session:
        return session.program.tree.source


@click.command()
@program_argument
@click.argument("relation", required=False)
@click.option("--stage", type=click.Choice(list(STAGES)), default="checked", show_default=True, help="What to show.")
@click.option(
    "--engine", default="local", show_default=True, type=click.Choice(["local", "spark"]),
    help="Engine whose plan to show; with spark also which strata are split into tasks, and why others are not.",
)  # fmt: skip
@format_option
@verbosity_options
def show(
    program: str, relation: str | None, stage: str, engine: str, form: str, verbosity: Verbosity,
) -> None:  # fmt: skip
    """Show the stages of a program, or a relation of a store.

    Prints what becomes of PROGRAM on its way from text to strata. If PROGRAM is a store: of its program as it is
    now, or the facts of RELATION, written `NAME` or `NAME@EPOCH`.

    \b
    Stages:
      text      the text after preprocessing
      tokens    the words of the text, with line and column
      tree      what was written, as a tree
      flat      the same as text, components and inline relations written out
      checked   what it means: one head and one conjunction a rule, every variable typed
      magic     the same, with only what its outputs need derived (as `.pragma "magic-transform" "*"` has it run)
      strata    the order in which relations are evaluated
      plan      how each version of a rule is joined, before the sizes of relations are known

    \b
    Examples:
      elastalog show reach.dl --stage strata
      elastalog show reach.dl --stage tokens | head
      elastalog show reach.dl --stage plan --engine spark
      elastalog show reach.store path@17
    """
    with exit_codes(form, verbosity):
        from elastalog.cli.store_options import is_store

        if relation is not None:
            if not is_store(program):
                raise click.UsageError(f"'{program}' is not a store, so it has no relation to show.")
            lines = _facts(program, relation)
        else:
            stages = _plan_on_spark if (stage, engine) == ("plan", "spark") else STAGES[stage]
            lines = stages(_source(program, is_store(program)))
        for line in lines:
            click.echo(line)
