"""`elastalog workbench`"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastalog.cli.exits import Verbosity, exit_codes
from elastalog.cli.options import format_option, verbosity_options
from elastalog.cli.preprocessor_options import preprocessor_options
from elastalog.cli.serve import require_web
from elastalog.cli.service_options import ServiceOptions, opened_service, service_options, settings_of, split_options
from elastalog.cli.session_options import announcing, session_options

if TYPE_CHECKING:
    from elastalog.web.service import Service
    from elastalog.web.settings import Settings


@click.command()
@click.argument("program", type=click.Path(), required=False, metavar="[PROGRAM|STORE]")
@click.option("--demo", is_flag=True, help="An example to look at: services, their calls, and secrets that get out.")
@preprocessor_options
@service_options
@session_options
@format_option
@verbosity_options
def workbench(program: str | None, demo: bool, form: str, verbosity: Verbosity, **options: Any) -> None:
    """Work on a program over the fact files of a folder, or on a store, in a browser.

    Change a fact or a rule and see every consequence; ask why, why not, and what to mend; go back in time. Prints the
    address to open, with a token that becomes a cookie. The interface of `elastalog serve` is at the same address. The
    pages load nothing from elsewhere. Ctrl-C ends it. Needs the extra `web`.

    \b
    Examples:
      elastalog workbench --demo
      elastalog workbench reach.dl -F facts
      elastalog workbench reach.store --port 9000
    """
    wanted, chosen = split_options(options)
    if demo == (program is not None):
        raise click.UsageError("give a PROGRAM, a STORE, or --demo")
    with exit_codes(form, verbosity):
        _require_pages()
        opened = _demo(wanted) if program is None else opened_service(program, wanted, chosen, form, verbosity)
        with announcing(verbosity), opened as (service, settings):
            _serve(service, settings, wanted, "services.dl" if program is None else Path(program).name)


def _serve(service: Service, settings: Settings, wanted: ServiceOptions, title: str) -> None:
    from elastalog.web.app import make_app
    from elastalog.web.pages.mounting import mount_pages
    from elastalog.web.serving import address_of, listen, serve

    listening = listen(wanted.host, wanted.port)
    app = make_app(service, settings)
    mount_pages(app, service, title=title)
    # A token that the user gave is theirs to keep: it is not printed.
    is_made = settings.token is not None and wanted.token is None
    address = address_of(listening, wanted.host) + (f"/?token={settings.token}" if is_made else "/")

    def started() -> None:
        click.echo(f"{title}: epoch {service.epoch} at {address}")
        if not is_made and settings.token is not None:
            click.echo("open it once with `?token=TOKEN` behind it; the browser keeps the token as a cookie")

    serve(app, service, listening, started)


@contextmanager
def _demo(wanted: ServiceOptions) -> Iterator[tuple[Service, Settings]]:
    """The demonstration, in a folder that goes when it ends."""
    from elastalog.web.pages.demo import live_through, open_demo
    from elastalog.web.service import Service

    settings = settings_of(wanted)
    with tempfile.TemporaryDirectory(prefix="elastalog-demo-") as folder:
        service = Service(open_demo(Path(folder) / "store"), settings.limits, is_twofold=not wanted.readers_wait)
        try:
            live_through(service)
            yield service, settings
        finally:
            service.close()


def _require_pages() -> None:
    """Raises ElastalogError without the extra `web`, or with an older one that has no pages."""
    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

    require_web()
    if find_spec("nicegui") is None:
        told = "the pages of the workbench need NiceGUI"
        raise ElastalogError([Diagnostic("E0954", told, help='install the extra: pip install "elastalog[web]"')])
