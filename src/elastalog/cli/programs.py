"""Commands about the text of a program: `elastalog check`, `show`, `format` and `lsp`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Final

import click

from elastalog.cli.exits import AT_FAULT, Console, exit_codes
from elastalog.cli.options import (
    NAME,
    preprocessing_given,
    preprocessor_options,
    program_argument,
    read_program,
    read_source,
    report_options,
    standard_input,
)
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tree import Tree


def _tokens(source: Source) -> Iterator[str]:
    from elastalog.syntax.tokens import tokenize

    tokens, diagnostics = tokenize(source)
    for kind, text, span in tokens:
        place = source.place(span.start) if source.pieces else source.place(span.start).removeprefix(f"{source.name}:")
        yield f"{place}\t{kind}\t{text}"
    _fail_on(diagnostics)


def _tree(source: Source) -> Iterator[str]:
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
"""The lines that each stage prints of a program."""


def _fail_on(diagnostics: tuple[object, ...]) -> None:
    found = [diagnostic for diagnostic in diagnostics if isinstance(diagnostic, Diagnostic)]
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise ElastalogError(found)


def _facts(store: str, wanted: str) -> Iterator[str]:
    """The facts of a relation of a store, `NAME` or `NAME@EPOCH`."""
    from elastalog.cli.reports import fact_lines
    from elastalog.cli.session_options import Moment, reading

    name, _, epoch = wanted.partition("@")
    with reading(store, Moment(1).convert(epoch, None, None) if epoch else None) as session:
        yield from fact_lines(session[name])


def _source(path: str, is_store: bool) -> Source:
    """The program in a file, or the program of the last epoch of a store."""
    from elastalog.cli.session_options import reading

    if not is_store:
        return read_source(path)
    with reading(path) as session:
        return session.program.tree.source


def outline(tree: Tree) -> Iterator[str]:
    """The nodes in source order, from the root. Iterative, because trees may be deep."""
    pending: list[tuple[object, int, str]] = [(item, 0, "") for item in reversed(tree.items)]
    while pending:
        node, depth, role = pending.pop()
        if not is_dataclass(node):  # a body: the literals of an alternative
            yield f"{'  ' * depth}{role}"
            if isinstance(node, tuple):
                pending.extend([(child, depth + 1, "") for child in reversed(node)])
            continue
        scalars, children = _parts(node)
        place = _place(getattr(node, "span", None), tree.source)
        label = f"{role}: " if role else ""
        yield f"{'  ' * depth}{label}{type(node).__name__}{scalars}{place}"
        pending.extend([(child, depth + 1, role) for role, child in reversed(children)])


def _parts(node: object) -> tuple[str, list[tuple[str, object]]]:
    """The fields that fit on the line of the node, and those that are nodes themselves."""
    scalars = []
    children: list[tuple[str, object]] = []
    for field in fields(node):  # type: ignore[arg-type]  # the caller has seen that it is one
        value = getattr(node, field.name)
        if isinstance(value, Span) or value is None or value == ():
            continue
        if is_dataclass(value):
            children.append((field.name, value))
        elif isinstance(value, tuple) and all(is_dataclass(part) for part in value):
            role = {"arguments": "", "heads": "head"}.get(field.name, field.name.removesuffix("s"))
            children.extend([(role, part) for part in value])
        elif field.name == "alternatives":
            children.extend([("alternative", part) for part in value])
        else:
            scalars.append(f" {field.name}={_scalar(value)}")
    return "".join(scalars), children


def _scalar(value: object) -> str:
    """A plain value; spans inside tuples are left out."""
    if isinstance(value, tuple):
        return f"({', '.join(_scalar(part) for part in value if not isinstance(part, Span))})"
    return value if isinstance(value, str) and value.isidentifier() else repr(value)


def _place(span: Span | None, source: Source) -> str:
    if span is None:
        return ""
    if source.pieces:
        return f" @{source.place(span.start)}"
    line, column = source.locate(span.start)
    return f" @{line}:{column}"


@click.command()
@program_argument
@click.argument("relation", required=False)
@click.option("--stage", type=click.Choice(list(STAGES)), default="checked", show_default=True, help="What to show.")
@click.option(
    "--engine", default="local", show_default=True, type=click.Choice(["local", "spark"]),
    help="Engine whose plan to show; with spark also which strata are split into tasks, and why others are not.",
)  # fmt: skip
@report_options
def show(
    program: str, relation: str | None, stage: str, engine: str, console: Console,
) -> None:  # fmt: skip
    """Show the stages of a program, or a relation of a store.

    Prints PROGRAM at one stage on its way from text to plan. If PROGRAM is a store, shows its current program, or the
    facts of RELATION, written `NAME` or `NAME@EPOCH`.

    \b
    Stages:
      text      the text after preprocessing
      tokens    the words of the text, with line and column
      tree      what was written, as a tree
      flat      as text again, with components and inline relations expanded
      checked   after analysis: one head and one conjunction per rule, every variable typed
      magic     the same, rewritten to derive only what the outputs need (as `.pragma "magic-transform" "*"` has it run)
      strata    the order in which relations are evaluated
      plan      how each version of a rule is joined, before the sizes of relations are known

    \b
    Examples:
      elastalog show reach.dl --stage strata
      elastalog show reach.dl --stage tokens | head
      elastalog show reach.dl --stage plan --engine spark
      elastalog show reach.store path@17
    """
    from elastalog.cli.session_options import is_store
    from elastalog.storage.manifest import check_format

    if relation is not None:
        if not is_store(program):
            if not Path(program).exists():
                check_format(Path(program))
            raise click.UsageError(f"'{program}' is not a store, so it has no relation to show.")
        lines = _facts(program, relation)
    else:
        stages = _plan_on_spark if (stage, engine) == ("plan", "spark") else STAGES[stage]
        lines = stages(_source(program, is_store(program)))
    for line in lines:
        click.echo(line)


@click.command()
@program_argument
@report_options
def check(program: str, console: Console) -> None:
    """Check a program and report its errors and warnings.

    Looks at the grammar, names, types, variables and strata of PROGRAM, and warns of rules that may grow without end.
    Diagnostics go to standard error. The exit code
    is 0 when the program has no error, 1 otherwise.

    \b
    Examples:
      elastalog check reach.dl
      elastalog check -v reach.dl                   notes too: hints that have no effect
      elastalog check --format json reach.dl        for editors and scripts
    """
    from elastalog.analysis.growth import warnings_of_growth
    from elastalog.planning.lower import lower

    loaded = read_program(program)
    # A group of an aggregate that only recursion binds comes to light when aggregates are rewritten.
    lower(loaded.checked)
    warnings = (*loaded.warnings, *warnings_of_growth(loaded.checked))
    if warnings or console.form == "json":
        console.show(warnings)


@click.command(name="format")
@click.argument("programs", type=click.Path(), nargs=-1, required=True, metavar="PROGRAM...")
@click.option("--write", "-w", is_flag=True, help="Rewrite the files instead of printing.")
@click.option("--check", "-c", "only_check", is_flag=True, help="Say which files would change; exit code 1 if any.")
@report_options
def format_command(programs: tuple[str, ...], write: bool, only_check: bool, console: Console) -> None:
    """Format programs in a standard layout.

    Every declaration, directive and rule starts on a line of its own, with uniform spacing and indentation. Comments,
    line breaks inside rules and preprocessor lines are kept. The tokens of the program never change.

    \b
    Examples:
      elastalog format reach.dl
      elastalog format --write rules/*.dl
      elastalog format --check reach.dl
      elastalog format - < reach.dl
    """
    if write and only_check:
        raise click.UsageError("--write and --check exclude each other")
    changed = [path for path in programs if _format(path, write, only_check)]
    if only_check:
        for path in changed:
            click.echo(f"would change: {path}")
        if changed:
            sys.exit(AT_FAULT)


def _format(path: str, write: bool, only_check: bool) -> bool:
    """Whether the layout of a program differs from its text."""
    from elastalog.pipeline.files.paths import replacing
    from elastalog.program import read_program_text
    from elastalog.syntax.format import format_program

    source = Source(NAME, standard_input()) if path == "-" else Source(path, read_program_text(path))
    text = source.text
    formatted, faults = format_program(source)
    if faults:
        raise ElastalogError(faults)
    if write and path != "-":
        if formatted != text:
            with replacing(Path(path)) as out:
                out.write(formatted.encode())
    elif not only_check:
        click.echo(formatted, nl=False)
    return formatted != text


@click.command()
@preprocessor_options
@click.option(
    "-F", "--facts", type=click.Path(exists=True, file_okay=False), metavar="DIR",
    help="Folder of fact files, to show how many facts a relation has.",
)  # fmt: skip
@click.option(
    "--stdio", is_flag=True, help="Use standard input and output (the default; accepted because editors pass it)."
)
def lsp(facts: str | None, stdio: bool) -> None:
    """Run a language server for editors.

    Offers diagnostics as you type, types, definitions, references, renaming, completion, quick fixes and formatting.
    The editor starts it and talks to it over standard input and output, as the extension in `editors/vscode` does.

    \b
    Examples:
      elastalog lsp
      elastalog lsp -I include -M DEBUG
      elastalog lsp -F facts                 numbers of facts too, as of the last save
    """
    with exit_codes():
        try:
            from elastalog.cli.language_server import serve
        except ImportError as fault:
            raise error("E0906", fault=fault) from None
        serve(preprocessing_given(), facts)
