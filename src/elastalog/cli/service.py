"""`elastalog serve` and `elastalog workbench`: the options of a service, and how it is started."""

from __future__ import annotations

import ipaddress
import secrets
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.exits import Console
from elastalog.cli.options import (
    duration,
    memory_size,
    option,
    options_of,
    preprocessor_options,
    report_options,
    together,
)
from elastalog.cli.session_options import (
    SessionOptions,
    announcing,
    is_store,
    load_program,
    open_session,
    session_options,
    tell_unread_facts,
    writing,
)
from elastalog.diagnostics.diagnostic import error
from elastalog.session.settings import Store

if TYPE_CHECKING:
    from elastalog.session import Session
    from elastalog.web.service import Service
    from elastalog.web.settings import Limits, Settings

PORT = 8642


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What the user said about who may ask, where, and how much."""

    host: str = option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen at.")
    port: int = option(
        "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), metavar="N",
        help="Port to listen at; 0 for any that is free.",
    )  # fmt: skip
    token: str | None = option(
        "--token", envvar="ELASTALOG_TOKEN", metavar="T",
        help="Token that grants reading and writing.  [default: ELASTALOG_TOKEN, or one that is made and printed]",
    )  # fmt: skip
    read_token: str | None = option("--read-token", metavar="T", help="Token that grants reading.")
    no_token: bool = option(
        "--no-token", is_flag=True, help="No token: everyone who can reach the address may read and write."
    )
    allow_host: tuple[str, ...] = option(
        "--allow-host", multiple=True, metavar="NAME",
        help="Another host name of the service, for example behind a proxy.",
    )  # fmt: skip
    store: str | None = option(
        "--store", type=click.Path(), metavar="DIR",
        help="Store for the epochs of a PROGRAM.  [default: a temporary one]",
    )  # fmt: skip
    retention: int | None = option(
        "--retention", type=click.IntRange(1), metavar="N", help="Number of past epochs to keep."
    )
    question_time: float | None = option(
        "--question-time", callback=duration, metavar="TIME", help="Time limit of a question, as 30s.  [default: 10s]"
    )
    question_memory: int | None = option(
        "--question-memory", callback=memory_size, metavar="SIZE",
        help="Memory that a question may allocate.  [default: 512M]",
    )  # fmt: skip
    replicas: int | None = option(
        "--replicas", type=click.IntRange(1), metavar="N",
        help="Number of concurrent previews and repairs, each on a copy of the facts.  [default: 1]",
    )  # fmt: skip
    max_body: int | None = option(
        "--max-body", callback=memory_size, metavar="SIZE", help="Largest request.  [default: 64M]"
    )
    max_rows: int | None = option(
        "--max-rows", type=click.IntRange(1), metavar="N", help="Most rows of a page.  [default: 10000]"
    )
    readers_wait: bool = option(
        "--readers-wait", is_flag=True,
        help="Keep facts once instead of twice: readers wait for commits, and a question that blocks one is refused.",
    )  # fmt: skip


service_options: Final = together(
    preprocessor_options, options_of(ServiceOptions, "wanted"), session_options, report_options
)


@contextmanager
def opened_service(
    path: str, wanted: ServiceOptions, options: SessionOptions, console: Console
) -> Iterator[tuple[Service, Settings]]:
    """The service of the program or store at a path, and who may ask it, for a block."""
    settings = settings_of(wanted)  # before any work
    from elastalog.web.service import Service

    with ExitStack() as stack:
        session = _session(path, wanted, options, console, stack)
        service = Service(session, settings.limits, is_twofold=not wanted.readers_wait)
        stack.callback(service.close)
        yield service, settings


def _session(path: str, wanted: ServiceOptions, options: SessionOptions, console: Console, stack: ExitStack) -> Session:
    if is_store(path) or Path(path).is_dir():
        if wanted.store is not None:
            raise click.UsageError("--store is for programs")
        tell_unread_facts(path, console)
        return writing(path, console, options.functors, options.bad_row_policy())
    store = wanted.store
    if store is None:
        # Earlier epochs can be looked at while the service runs.
        store = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elastalog-"))) / "store")
    program = load_program(path, console)
    return open_session(program, options, console, store=Store(store, wanted.retention))


def settings_of(wanted: ServiceOptions) -> Settings:
    """The settings that say who may ask. Raises ElastalogError if others could reach a service that asks for no token,
    unless the user said that they may."""
    from elastalog.web.settings import Settings

    if wanted.no_token and (wanted.token is not None or wanted.read_token is not None):
        raise click.UsageError("--no-token and a token exclude each other")
    is_own = _is_own(wanted.host)
    token = None if wanted.no_token else wanted.token
    if token is None and not wanted.no_token:
        if not is_own:
            raise error("E0935", host=wanted.host)
        token = secrets.token_urlsafe(24)
    hosts = (*wanted.allow_host, *(() if is_own else (_name(wanted.host),)))
    return Settings(token, wanted.read_token, hosts, _limits(wanted))


def _limits(wanted: ServiceOptions) -> Limits:
    from elastalog.web.settings import Limits

    given = {
        "seconds": wanted.question_time, "memory": wanted.question_memory, "replicas": wanted.replicas,
        "body": wanted.max_body, "rows": wanted.max_rows,
    }  # fmt: skip
    found = replace(Limits(), **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    return replace(found, page=min(found.page, found.rows))


def _name(host: str) -> str:
    """What requests call a host: any name, where the service listens at every address."""
    return "*" if host in ("0.0.0.0", "::", "") else host


def _is_own(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@click.command()
@click.argument("program", type=click.Path(), metavar="PROGRAM|STORE")
@service_options
def serve(program: str, wanted: ServiceOptions, options: SessionOptions, console: Console) -> None:
    """Serve a program and its fact files, or a store, over HTTP.

    Prints the address, and the token if one was made. Readers see the last epoch and never wait for a commit. Ctrl-C
    stops the service once the commit under way is done. `/api/docs` at the address lists every call;
    `elastalog.connect` is the client for Python. Needs the extra `web`.

    \b
    Examples:
      elastalog serve reach.dl -F facts
      elastalog serve reach.store --port 9000 --token T --read-token R
      elastalog serve reach.dl -F facts --store reach.store --host 0.0.0.0 --token T
    """
    require_web()
    console.say(f"opening {program} …")
    with announcing(console), opened_service(program, wanted, options, console) as (service, settings):
        from elastalog.web.app import address_of, listen, make_app, serve, without_pages

        listening = listen(wanted.host, wanted.port)
        address = address_of(listening, wanted.host)

        def started() -> None:
            service.tell_address(address)
            click.echo(f"{program}: epoch {service.epoch} at {address}")
            if settings.token is not None and wanted.token is None:
                click.echo(f"token: {settings.token}")

        serve(without_pages(make_app(service, settings)), service, listening, started)


def require_web() -> None:
    """Raises ElastalogError without the extra `web`."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise error("E0937.require_web")


@click.command()
@click.argument("program", type=click.Path(), required=False, metavar="[PROGRAM|STORE]")
@click.option("--demo", is_flag=True, help="An example to look at: services, their calls, and secrets that get out.")
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@service_options
def workbench(
    program: str | None, demo: bool, opens: bool, wanted: ServiceOptions, options: SessionOptions, console: Console
) -> None:
    """Work on a program and its fact files, or on a store, in the browser.

    Change a fact or a rule and see every consequence; ask why, why not, and what to repair; go back in time. Without a
    program it starts from an empty one: paste facts and write rules on the page Program. Prints the address to open,
    with a token that becomes a cookie. The interface of `elastalog serve` is at the same address. The pages load
    nothing from other sites. Ctrl-C stops it. Needs the extra `web`.

    \b
    Examples:
      elastalog workbench --demo --open
      elastalog workbench
      elastalog workbench reach.dl -F facts
      elastalog workbench reach.store --port 9000
    """
    if demo and program is not None:
        raise click.UsageError("give a PROGRAM, a STORE, or --demo, not two of them")
    _require_pages()
    if program is not None:
        opened, title = opened_service(program, wanted, options, console), Path(program).name
    else:
        opened, title = _in_a_folder(wanted, demo), "services.dl" if demo else "new.dl"
    console.say(f"opening {title} …")
    with announcing(console), opened as (service, settings):
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
    place = address_of(listening, wanted.host)
    address = place + (f"/?token={settings.token}" if is_made else "/")

    def started() -> None:
        service.tell_address(place)
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

    require_web()
    if find_spec("nicegui") is None:
        raise error("E0954")
