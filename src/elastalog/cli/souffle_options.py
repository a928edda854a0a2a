"""Options that scripts for Soufflé pass to it: obeyed where they mean something here, left without effect where they
only steer how Soufflé works inside, and refused with the way to go where something else does their work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.options import together

if TYPE_CHECKING:
    from elastalog.program import Program

_QUIET, _PRAGMAS = "elastalog.no-warnings", "elastalog.pragmas"

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
    return bool(click.get_current_context().meta.get(_QUIET))


def with_pragmas(program: Program) -> Program:
    """The program with the pragmas of the command line, which go before its own."""
    from elastalog.program.program import with_pragmas

    return with_pragmas(program, click.get_current_context().meta.get(_PRAGMAS, {}))


def _keep_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[_QUIET] = value


def _keep_pragmas(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    for value in values:
        key, _, text = value.partition("=")
        ctx.meta.setdefault(_PRAGMAS, {})[key.strip()] = text.strip()


def _keep_list(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta.setdefault(_PRAGMAS, {})[param.opts[-1].removeprefix("--")] = value


def _refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"{' / '.join(param.opts)} is Soufflé's: {_REFUSED[tuple(param.opts)]}", ctx)


souffle_options: Final = together(
    click.option("-w", "--no-warn", is_flag=True, hidden=True, expose_value=False, callback=_keep_quiet),
    click.option("-P", "--pragma", multiple=True, hidden=True, expose_value=False, callback=_keep_pragmas),
    *(
        click.option(*names, hidden=True, expose_value=False, callback=_keep_list)
        for names in (("-m", "--magic-transform"), ("--magic-transform-exclude",))
    ),
    *(click.option(*names, is_flag=True, hidden=True, expose_value=False) for names in _WITHOUT_EFFECT),
    *(click.option(*names, hidden=True, expose_value=False) for names in _WITHOUT_EFFECT_WITH_VALUE),
    *(click.option(*names, hidden=True, expose_value=False, callback=_refuse) for names in _REFUSED),
)
"""The options, hidden in the help; `without_warnings` and `with_pragmas` know what was given."""
