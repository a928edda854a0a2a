"""`elastalog doctor`, `elastalog completion` and `elastalog explain-error`."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill, indent
from typing import Final

import click

from elastalog import __version__
from elastalog.cli.exits import WRONG_USAGE, exit_codes
from elastalog.cli.session_options import announcing

OPTIONAL: Final = {
    "numba": "compiling operators that the installed wheel does not include",
    "pandas": "data frames",
    "polars": "data frames",
    "pyspark": "engine spark",
    "highspy": "proofs that a repair is minimum",
    "prompt_toolkit": "history and completion in the shell",
    "pygls": "the language server",
    "IPython": "notebooks",
    "nvidia-cuda-nvrtc-cu12": "compiling the GPU's module if the installed wheel does not include it",
}
_PROGRAM = """
.decl edge(from: number, to: number)
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""


@click.command()
def doctor() -> None:
    """Check that Elastalog works on this machine.

    Lists what is installed, then evaluates, updates and stores a small program and says how long that takes. The exit
    code is 0 if the core works, whichever optional packages are missing, and 1 otherwise.

    \b
    Example:
      elastalog doctor
    """
    click.echo(f"elastalog {__version__}, Python {platform.python_version()}, {platform.platform()}")
    click.echo(f"processors: {os.cpu_count()}")
    for package in ("numpy", "pyarrow"):
        click.echo(f"{package}: {_version(package) or 'missing'}")
    for package, purpose in OPTIONAL.items():
        click.echo(f"{package}: {_version(package) or 'not installed'} (optional: {purpose})")
    click.echo(f"device: {_device()}")
    with announcing():
        checks = (("evaluate and update", _evaluates), ("store", _stores))
        results = [_told(name, check) for name, check in checks]
    is_well = all(results)
    click.echo("the core works" if is_well else "the core does not work: please report what stands above")
    sys.exit(0 if is_well else 1)


def engine_details() -> str:
    """What evaluates programs, in one line, for `--version`."""
    return ", ".join(f"{name} {_version(name) or 'missing'}" for name in ("numpy", "pyarrow"))


def _told(name: str, check: Callable[[], None]) -> bool:
    began = time.perf_counter()
    try:
        check()
    except Exception as error:
        click.echo(f"{name}: failed: {type(error).__name__}: {error}")
        return False
    click.echo(f"{name}: fine ({time.perf_counter() - began:.1f} s)")
    return True


def _evaluates() -> None:
    import elastalog

    with elastalog.open(_PROGRAM, {"edge": [(1, 2), (2, 3), (3, 4)]}) as db:
        changes = db.apply({"edge": [(4, 5)]}, {"edge": [(1, 2)]})
        _require(sorted(db["path"]) == [(2, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)])
        _require(len(changes["path"].inserted) == 3)
        _require(db.explain("path(2, 5)").height == 3)


def _stores() -> None:
    import elastalog

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with elastalog.open(_PROGRAM, {"edge": [(1, 2)]}, store=path) as db:
            db.apply({"edge": [(2, 3)]})
        with elastalog.open(store=path) as db:
            _require((1, 3) in db["path"])
            _require(db.verify().is_exact)


def _require(is_right: bool) -> None:
    if not is_right:
        raise RuntimeError("a wrong answer")


def _device() -> str:
    """The GPU that the engine `gpu` would use, or what it would do without one."""
    from elastalog.backends.gpu.arrays import on_device

    arrays = on_device()
    if arrays is None:
        return "none; engine gpu would run on NumPy"
    return f"{arrays.name}, of whose memory {(arrays.room or 0) >> 20:,} MiB may be used"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


_WHERE: Final = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/elastalog.fish"}


@click.command()
@click.argument("shell", type=click.Choice(list(_WHERE)))
def completion(shell: str) -> None:
    """Print a script that completes the commands and options of elastalog in a shell.

    \b
    Examples:
      elastalog completion bash >> ~/.bashrc
      elastalog completion fish > ~/.config/fish/completions/elastalog.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    commands = click.get_current_context().find_root().command
    click.echo(kind(commands, {}, "elastalog", "_ELASTALOG_COMPLETE").source())


@click.command("explain-error")
@click.argument("code", required=False)
def explain_error(code: str | None) -> None:
    """Explain an error code.

    Shows why it is an error, a program that has it, and the same program corrected. Without CODE, lists all codes.

    \b
    Examples:
      elastalog explain-error E0412
      elastalog explain-error | grep -i aggregate
    """
    with exit_codes():
        from elastalog.diagnostics.catalogue import CATALOGUE

        if code is None:
            for entry in CATALOGUE.values():
                click.echo(f"{entry.code}  {entry.title}")
            return
        found = CATALOGUE.get(_normal_form(code))
        if found is None:
            from elastalog.diagnostics.nearest import nearest

            wanted = _normal_form(code)
            of_same_stage = [known for known in CATALOGUE if known[:3] == wanted[:3]]
            near = nearest(wanted, of_same_stage) or nearest(wanted, CATALOGUE)
            hint = f"did you mean {near}?" if near else "`elastalog explain-error` lists all codes"
            click.echo(f"unknown error code `{code[:40]}`: {hint}", err=True)
            sys.exit(WRONG_USAGE)
        paragraphs = "\n\n".join(fill(paragraph, 100) for paragraph in found.explanation.split("\n\n"))
        click.echo(f"{found.code}: {found.title}\n\n{paragraphs}\n")
        click.echo(f"Wrong:\n\n{indent(found.example.strip(), '    ')}\n")
        click.echo(f"Right:\n\n{indent(found.fix.strip(), '    ')}")


def _normal_form(code: str) -> str:
    """`e412`, `412` and `E0412` are the same code."""
    digits = code.strip().upper().removeprefix("E")
    return f"E{digits.zfill(4)}" if digits.isascii() and digits.isdigit() else code
