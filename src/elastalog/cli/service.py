"""`elastalog serve` and `elastalog workbench`: the options of a service, and how it is started."""

from __future__ import annotations

import ipaddress
import secrets
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from elastalog.cli.exits import Console
from elastalog.cli.options import (
    Whole,
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
    opened_to_write,
    session_options,
)
from elastalog.diagnostics.diagnostic import error, finding, warn_of
from elastalog.session.settings import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from elastalog.session import Session
    from elastalog.web.service import Service
    from elastalog.web.settings import Limits, Settings

PORT = 8642


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options that say who may use the service, where, and how much."""

    host: str = option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen at.")
    port: int = option(
        "--port", default=PORT, show_default=True, type=Whole(0, 65535), metavar="N",
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
    retention: int | None = option("--retention", type=Whole(1), metavar="N", help="Number of past epochs to keep.")
    question_time: float | None = option(
        "--question-time", callback=duration, metavar="TIME", help="Time limit of a question, as 30s.  [default: 10s]"
    )
    question_memory: int | None = option(
        "--question-memory", callback=memory_size, metavar="SIZE",
        help="Memory that a question may allocate.  [default: 512M]",
    )  # fmt: skip
    replicas: int | None = option(
        "--replicas", type=Whole(1), metavar="N",
        help="Number of concurrent previews and repairs, each on a copy of the facts.  [default: 1]",
    )  # fmt: skip
    max_body: int | None = option(
        "--max-body", callback=memory_size, metavar="SIZE", help="Largest request.  [default: 64M]"
    )
    max_rows: int | None = option(
        "--max-rows", type=Whole(1), metavar="N", help="Most rows of a page.  [default: 10000]"
    )
    readers_wait: bool = option(
        "--readers-wait", is_flag=True,
        help="Keep facts once instead of twice: readers wait for commits, and a question that blocks one is refused.",
    )  # fmt: skip


service_options: Final = together(
    preprocessor_options, options_of(ServiceOptions, "wanted"), session_options, report_options
)


@contextmanager
def _opened_service(
    wanted: ServiceOptions, session_of: Callable[[ExitStack], Session]
) -> Iterator[tuple[Service, Settings]]:
    """A service and its access settings, for a block. `session_of` opens its session; the stack closes it."""
    settings = settings_of(wanted)  # before any work
    from elastalog.web.service import Service

    with ExitStack() as stack:
        service = Service(session_of(stack), settings.limits, is_twofold=not wanted.readers_wait)
        stack.callback(service.close)
        yield service, settings


def _session(path: str, wanted: ServiceOptions, options: SessionOptions, console: Console, stack: ExitStack) -> Session:
    """A session of the program or store at a path."""
    if is_store(path) or Path(path).is_dir():
        if wanted.store is not None:
            raise click.UsageError("--store is for programs")
        return opened_to_write(path, options, console)
    # Without a store of the user's, earlier epochs can be looked at while the service runs.
    store = wanted.store or str(_temporary(stack))
    program = load_program(path, console)
    return open_session(program, options, console, store=Store(store, wanted.retention))


def _temporary(stack: ExitStack) -> Path:
    """A temporary place for a store that lasts as long as the service."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elastalog-"))) / "store"


def settings_of(wanted: ServiceOptions) -> Settings:
    """The access settings. Raises ElastalogError if others could reach a service without a token, unless the user
    allowed that."""
    from elastalog.web.settings import Settings

    if wanted.no_token and (wanted.token is not None or wanted.read_token is not None):
        raise click.UsageError("--no-token and a token exclude each other")
    is_own = _is_own(wanted.host)
    token = None if wanted.no_token else wanted.token
    if wanted.no_token and not is_own:
        warn_of(finding("E0935.everyone", severity="warning", host=wanted.host))
    elif token is None and not wanted.no_token:
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
    opened = _opened_service(wanted, partial(_session, program, wanted, options, console))
    with announcing(console), opened as (service, settings):
        from elastalog.web.app import make_app, without_pages

        _serve(without_pages(make_app(service, settings)), service, settings, wanted, program)


def _serve(
    app: FastAPI, service: Service, settings: Settings, wanted: ServiceOptions, title: str, *,
    has_pages: bool = False, opens: bool = False,
) -> None:  # fmt: skip
    """Serves an application, and prints its address. A token that the user gave is theirs to keep: only one that was
    made is printed, for pages within their address."""
    from elastalog.web.app import address_of, listen, serve

    listening = listen(wanted.host, wanted.port)
    address, token = address_of(listening, wanted.host), settings.token
    is_made = token is not None and wanted.token is None

    def started() -> None:
        service.tell_address(address)
        shown = address + (f"/?token={token}" if is_made else "/") * has_pages
        click.echo(f"{title}: epoch {service.epoch} at {shown}")
        if is_made and not has_pages:
            click.echo(f"token: {token}")
        elif token is not None and has_pages and not is_made:
            click.echo("sign in there with the token; the browser keeps it as a cookie")
        if opens:
            webbrowser.open(shown)

    serve(app, service, listening, started)


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
    from elastalog.web.app import make_app
    from elastalog.web.pages.demo import live_through, open_demo, open_empty
    from elastalog.web.pages.frame import mount_pages

    def session(stack: ExitStack) -> Session:
        if program is not None:
            return _session(program, wanted, options, console, stack)
        return open_demo(_temporary(stack)) if demo else open_empty(Path(wanted.store or _temporary(stack)))

    title = Path(program).name if program is not None else "services.dl" if demo else "new.dl"
    console.say(f"opening {title} …")
    with announcing(console), _opened_service(wanted, session) as (service, settings):
        if demo:
            live_through(service)
        app = make_app(service, settings)
        mount_pages(app, service, title=title, is_demo=demo)
        _serve(app, service, settings, wanted, title, has_pages=True, opens=opens)


def _require_pages() -> None:
    """Raises ElastalogError without the extra `web`, or with an older one that has no pages."""

    require_web()
    if find_spec("nicegui") is None:
        raise error("E0954")
