"""`elastalog serve`"""

from __future__ import annotations

from typing import Any

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import preprocessor_options
from elastalog.cli.service_options import opened_service, service_options, split_options
from elastalog.cli.session_options import announcing, session_options


@click.command()
@click.argument("program", type=click.Path(), metavar="PROGRAM|STORE")
@preprocessor_options
@service_options
@session_options
@format_option
@verbosity_options
def serve(program: str, form: str, verbosity: Verbosity, **options: Any) -> None:
    """Offer a program over the fact files of a folder, or a store, to other programs, over HTTP.

    Prints the address, and the token if one was made. Readers see the last epoch and never wait for a commit. Ctrl-C
    ends the service when the commit under way is done. `/api/docs` at the address lists every call;
    `elastalog.connect` is the client for Python. Needs the extra `web`.

    \b
    Examples:
      elastalog serve reach.dl -F facts
      elastalog serve reach.store --port 9000 --token T --read-token R
      elastalog serve reach.dl -F facts --store reach.store --host 0.0.0.0 --token T
    """
    wanted, chosen = split_options(options)
    with exit_codes(form, verbosity):
        require_web()
        with announcing(verbosity), opened_service(program, wanted, chosen, form, verbosity) as (service, settings):
            from elastalog.web.app import address_of, listen, make_app, serve, without_pages

            listening = listen(wanted.host, wanted.port)
            address = address_of(listening, wanted.host)

            def started() -> None:
                click.echo(f"{program}: epoch {service.epoch} at {address}")
                if settings.token is not None and wanted.token is None:
                    click.echo(f"token: {settings.token}")

            serve(without_pages(make_app(service, settings)), service, listening, started)


def require_web() -> None:
    """Raises ElastalogError without the extra `web`."""
    from importlib.util import find_spec

    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        told = "a service needs FastAPI and uvicorn"
        raise ElastalogError([Diagnostic("E0937", told, help='install the extra: pip install "elastalog[web]"')])
