"""`elastalog workbench`"""

from __future__ import annotations

import tempfile
import webbrowser
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
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@preprocessor_options
@service_options
@session_options
@format_option
@verbosity_options
def workbench(program: str | None, demo: bool, opens: bool, form: str, verbosity: Verbosity, **options: Any) -> None:
    """Work on a program over the fact files of a folder, or on a store, in a browser.

    Change a fact or a rule and see every consequence; ask why, why not, and what to mend; go back in time. Without a
    program it begins with an empty one: paste facts and write rules on the page Program. Prints the address to open,
    with a token that becomes a cookie. The interface of `elastalog serve` is at the same address. The pages load
    nothing from elsewhere. Ctrl-C ends it. Needs the extra `web`.

    \b
    Examples:
      elastalog workbench --demo --open
      elastalog workbench
      elastalog workbench reach.dl -F facts
      elastalog workbench reach.store --port 9000
    """
    wanted, chosen = split_options(options)
    if demo and program is not None:
        raise click.UsageError("give a PROGRAM, a STORE, or --demo, not two of them")
    with exit_codes(form, verbosity):
        _require_pages()
        if program is not None:
            opened, title = opened_service(program, wanted, chosen, form, verbosity), Path(program).name
        else:
            opened, title = _in_a_folder(wanted, demo), "services.dl" if demo else "new.dl"
        with announcing(verbosity), opened as (service, settings):
            _serve(service, settings, wanted, title, demo, opens)


def _serve(
    service: Service, settings: Settings, wanted: ServiceOptions, title: str, is_demo: bool, opens: bool
) -> None:
    from elastalog.web.app import address_of, listen, make_app, serve
    from elastalog.web.pages.frame import mount_pages

    listening = listen(wanted.host, wanted.port)
    app = make_app(service, settings)
    mount_pages(app, service, title=title, is_demo=is_demo)
    # A token that the user gave is theirs to keep: it is not printed.
    is_made = settings.token is not None and wanted.token is None
    address = address_of(listening, wanted.host) + (f"/?token={settings.token}" if is_made else "/")

    def started() -> None:
        click.echo(f"{title}: epoch {service.epoch} at {address}")
        if not is_made and settings.token is not None:
            click.echo("sign in there with the token; the browser keeps it as a cookie")
        if opens:
            webbrowser.open(address)

    serve(app, service, listening, started)


@contextmanager
def _in_a_folder(wanted: ServiceOptions, is_demo: bool) -> Iterator[tuple[Service, Settings]]:
    """The demonstration, or an empty program, in a folder that goes when it ends, unless a store is named."""
    from elastalog.web.pages.demo import live_through, open_demo, open_empty
    from elastalog.web.service import Service

    settings = settings_of(wanted)
    with tempfile.TemporaryDirectory(prefix="elastalog-") as folder:
        store = Path(folder) / "store"
        session = open_demo(store) if is_demo else open_empty(Path(wanted.store or store))
        service = Service(session, settings.limits, is_twofold=not wanted.readers_wait)
        try:
            if is_demo:
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
