"""`elastalog run`, with the options that scripts pass to Soufflé: those with a meaning here are obeyed, those that only
tune Soufflé are ignored, and others are refused with advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.cli.exits import Console, exit_codes
from elastalog.cli.options import console_options, format_option, given, kept, preprocessor_options, together
from elastalog.cli.outputs import checked_output, write_outputs, write_text
from elastalog.cli.reports import TO_TERMINAL, profile_json, profile_lines
from elastalog.cli.session_options import SessionOptions, announcing, load_program, open_session, session_options
from elastalog.diagnostics.messages import counted

if TYPE_CHECKING:
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.program import Program
    from elastalog.session import Session

_LISTS: Final = ("magic-transform", "magic-transform-exclude")
_HEEDED: Final = ("arithmetic", "extra-fields", *_LISTS)
"""The pragmas that have a meaning here; scripts may pass others of Soufflé's."""
_WITHOUT_EFFECT: Final = (("-c", "--compile"), ("-C", "--compile-many"), ("--legacy",), ("--live-profile",))
_WITHOUT_EFFECT_WITH_VALUE: Final = (
    ("-z", "--disable-transformers"),
    ("-a", "--auto-schedule"),
    ("-u", "--profile-use"),
    ("--inline-exclude",),
)
_REFUSED: Final[Mapping[tuple[str, ...], str]] = {
    ("-o", "--dl-program"): "nothing is compiled to a file of its own: run the program itself.",
    ("-g", "--generate"): "no C++ is generated: run the program itself, or open it from Python with elastalog.open.",
    ("-s", "--swig"): "open the program from Python with elastalog.open.",
    ("-p", "--profile"): "write what rules and relations cost with --stats FILE.json.",
    ("-t", "--provenance"): "ask for proofs with 'elastalog explain' or in 'elastalog shell'.",
    ("-r", "--debug-report"): "look at the program with 'elastalog show --stage …'.",
    ("--show",): "look at the program with 'elastalog show --stage …'.",
    ("--preprocessor",): "the preprocessor is built in: define macros with -M, or leave it out with --no-preprocessor.",
    ("--parse-errors",): "use 'elastalog check'.",
}


def without_warnings() -> bool:
    """Whether `-w` was given."""
    return bool(given("no_warn"))


def with_pragmas(program: Program, arithmetic: str | None) -> Program:
    """The program with the pragmas and the arithmetic of the command line, which precede its own."""
    from elastalog.program.program import with_arithmetic, with_pragmas

    lists = {name: given(name.replace("-", "_")) for name in _LISTS}
    pragmas = {**given("pragma", {}), **{name: text for name, text in lists.items() if text is not None}}
    return with_arithmetic(with_pragmas(program, pragmas), arithmetic)


def _pragmas(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pragmas = {}
    for value in values:
        key, _, text = value.partition("=")
        if key.strip() not in _HEEDED:
            click.echo(f"warning: -P {value} has no effect: what has is {', '.join(_HEEDED)}", err=True)
        pragmas[key.strip()] = text.strip()
    return pragmas


def _refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"{' / '.join(param.opts)} is Soufflé's: {_REFUSED[tuple(param.opts)]}", ctx)


souffle_options: Final = together(
    kept("-w", "--no-warn", is_flag=True, hidden=True),
    kept(
        "-P",
        "--pragma",
        multiple=True,
        read=_pragmas,
        metavar="NAME=VALUE",
        help="As `.pragma` in the program, such as extra-fields=ignore; may be repeated.",
    ),
    kept("-m", "--magic-transform", hidden=True),
    kept("--magic-transform-exclude", hidden=True),
    *(click.option(*names, is_flag=True, hidden=True, expose_value=False) for names in _WITHOUT_EFFECT),
    *(click.option(*names, hidden=True, expose_value=False) for names in _WITHOUT_EFFECT_WITH_VALUE),
    *(click.option(*names, hidden=True, expose_value=False, callback=_refuse) for names in _REFUSED),
)
"""The options, all but `--pragma` hidden in the help; `without_warnings` and `with_pragmas` read their values."""


@click.command()
@click.argument("program", type=click.Path(), required=False, metavar="PROGRAM")
@preprocessor_options
@session_options
@click.option(
    "-D", "--output", "--output-dir", "output", default=".", metavar="DIR",
    help="Folder of the output files, or - for standard output.  [default: the current one]",
)  # fmt: skip
@click.option(
    "--stats", is_flag=False, flag_value=TO_TERMINAL, metavar="[FILE.json]",
    help="Print what rules and relations cost, or write it to FILE.json.",
)  # fmt: skip
@format_option
@console_options
@souffle_options
def run(program: str | None, output: str, stats: str | None, console: Console, options: SessionOptions) -> None:
    """Evaluate PROGRAM over the fact files of a folder and write its outputs.

    Every relation with `.input` is read from NAME.facts (tab-separated; also .csv, .tsv, .parquet, .jsonl, .gz), every
    relation with `.output` is written to NAME.csv, as Soufflé does. Output files appear complete or not at all.

    \b
    Examples:
      elastalog run reach.dl -F facts -D out
      elastalog run reach.dl -F facts -D - | head
      elastalog run reach.dl -F facts -D out --stats
      elastalog run reach.dl --max-memory 2G --timeout 5m --bad-rows quarantine
    """
    if console.verbosity == "normal" and without_warnings():
        console = Console(console.form, "quiet")
    program, stats = _told_apart(program, stats)
    is_written = False

    def left() -> str:
        return "files already written are whole" if is_written else "nothing was written"

    with exit_codes(console, left), checked_output():
        # Before what follows changes the checked program: another arithmetic is read with the text.
        loaded = with_pragmas(load_program(program, console), options.arithmetic)
        loaded = _with_demand(loaded)
        loaded = _without_unused_inputs(loaded, options.facts, console)
        with announcing(console):
            session = _evaluate(loaded, options, output, console)
        is_written = True
        doubts: list[Diagnostic] = []
        files = write_outputs(session, output, options.jobs, doubts.append)
        _warn(doubts, console)
        if not console.is_quiet and stats is None and not _has_output(loaded):
            click.echo(f"nothing was written: {program} has no `.output`, nor `.printsize`", err=True)
        if stats == TO_TERMINAL:
            for line in profile_lines(session.statistics()):
                click.echo(line, err=True)
        elif stats is not None:
            write_text(stats, profile_json(session))
        if console.is_watched:
            click.echo(_summary(session, files), err=True)


def _told_apart(program: str | None, stats: str | None) -> tuple[str, str | None]:
    """`--stats PROGRAM` means the table: only a name that ends in `.json` is taken for its file."""
    if stats is not None and stats != TO_TERMINAL and not stats.endswith(".json"):
        if program is not None:
            raise click.BadParameter(f"'{stats}' does not end in .json.", param_hint="'--stats'")
        program, stats = stats, TO_TERMINAL
    if program is None:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    return program, stats


def _with_demand(program: Program) -> Program:
    """The program as it is evaluated once: with `magic`, only what its outputs need is derived."""
    from dataclasses import replace

    from elastalog.planning.demand import asked_by_program, outputs_of, with_demand, with_existence_apart

    checked, wanted = program.checked, asked_by_program(program.checked)
    if wanted is not None:
        checked = with_demand(checked, outputs_of(checked), wanted)
    return replace(program, checked=with_existence_apart(checked))


def _without_unused_inputs(program: Program, facts: Any, console: Console) -> Program:
    """The program without inputs that no output needs and that have no file: Soufflé does not read those."""
    from dataclasses import replace

    from elastalog.analysis.stratify import needed_for
    from elastalog.pipeline.files.loading import inputs_of, is_missing, not_needed
    from elastalog.planning.demand import outputs_of

    checked = program.checked
    needed = needed_for(checked, outputs_of(checked))
    unused = [r for r in inputs_of(checked) if needed and r.name not in needed and is_missing(r, facts)]
    if not unused:
        return program
    console.show([not_needed(unused)])
    kept = {r.name: replace(r, directives=tuple(d for d in r.directives if d.kind != "input")) for r in unused}
    return replace(program, checked=replace(checked, relations={**checked.relations, **kept}))


def _evaluate(program: Program, options: SessionOptions, output: str, console: Console) -> Session:
    from dataclasses import replace

    from elastalog.pipeline.files.loading import keep_inputs
    from elastalog.planning.needed_groups import may_await_groups

    if output != "-":
        keep_inputs(program.checked, options.facts, output)
    if options.strategy == "elastic" and options.levels == "local" and not may_await_groups(program.checked):
        # Nothing is updated here: what updates need of every fact, a third of the memory, need not be kept.
        options = replace(options, strategy="recompute")
    return open_session(program, options, console, quarantine="." if output == "-" else output)


def _has_output(program: Program) -> bool:
    directives = (one for relation in program.checked.relations.values() for one in relation.directives)
    return any(one.kind in ("output", "printsize") for one in directives)


def _warn(doubts: list[Diagnostic], console: Console) -> None:
    """Warns of symbols with line breaks, which are written as Soufflé writes them: readers of the file must be
    prepared."""
    from dataclasses import replace

    if doubts:
        console.show([replace(doubt, severity="warning") for doubt in doubts])


def _summary(session: Session, files: list[Path]) -> str:
    text = counted(sum(len(session[name]) for name in session), "fact")
    entry = session.log()[-1]
    text += f", {counted(entry.derivations, 'derivation')}, evaluated in {entry.seconds:.2f} s"
    return f"{text}; {counted(len(files), 'file')} written" if files else text
