"""`elastalog backup`"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.store_options import folder_of, store_argument
from elastalog.folders.addresses import is_address, without_secrets


@click.command()
@store_argument
@click.argument("to", type=click.Path(), metavar="TO")
@format_option
@verbosity_options
def backup(store: str, to: str, form: str, verbosity: Verbosity) -> None:
    """Copy a store into the new folder TO, while it may be in use.

    The copy is a store of its own, at the last epoch that was committed when it was begun, with the same history.

    \b
    Examples:
      elastalog backup reach.store backups/monday
      elastalog verify backups/monday
    """
    from elastalog.storage.administration import back_up
    from elastalog.storage.objects.writing import copied_to

    with exit_codes(form, verbosity):
        copy = partial(back_up, folder_of(store))
        epoch = copied_to(to, copy) if is_address(to) else copy(Path(to))
        if verbosity != "quiet":
            click.echo(f"{without_secrets(to)}: epoch {epoch}", err=True)
