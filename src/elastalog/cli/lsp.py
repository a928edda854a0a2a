"""`elastalog lsp`"""

from __future__ import annotations

import click

from elastalog.cli.exits import exit_codes
from elastalog.cli.preprocessor_options import preprocessing_given, preprocessor_options


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
    """Serve an editor that speaks the language server protocol.

    Diagnostics while you write, types, definitions, references, new names, completion, repairs, layout. The editor
    starts it and talks over standard input and output; `editors/vscode` has an extension that does.

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
            raise _not_installed(fault) from None
        serve(preprocessing_given(), facts)


def _not_installed(fault: ImportError) -> Exception:
    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

    message = f"the language server needs pygls: {fault}"
    return ElastalogError([Diagnostic("E0906", message, help='pip install "elastalog[lsp]"')])
