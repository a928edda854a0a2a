"""`elastalog completion`"""

from __future__ import annotations

from typing import Final

import click

_WHERE: Final = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/elastalog.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_WHERE)))
def completion(shell: str) -> None:
    """Print what makes a command shell complete the commands and options of elastalog.

    \b
    Examples:
      elastalog completion bash >> ~/.bashrc
      elastalog completion fish > ~/.config/fish/completions/elastalog.fish
    """
    from click.shell_completion import get_completion_class

    from elastalog.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "elastalog", "_ELASTALOG_COMPLETE").source())
