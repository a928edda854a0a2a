"""Options of the commands that start a service, and how they start it."""

from __future__ import annotations

import ipaddress
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from elastalog.cli.exits import Verbosity
from elastalog.cli.limits import duration, memory_size
from elastalog.cli.options import together
from elastalog.cli.session_options import SessionOptions, load_program, open_session
from elastalog.cli.store_options import is_store, writing

if TYPE_CHECKING:
    from elastalog.session import Session
    from elastalog.web.service import Service
    from elastalog.web.settings import Limits, Settings

PORT = 8642


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What the user said about who may ask, where, and how much."""

    host: str
    port: int
    token: str | None
    read_token: str | None
    no_token: bool
    allow_host: tuple[str, ...]
    store: str | None
    retention: int | None
    question_time: float | None
    question_memory: int | None
    replicas: int | None
    max_body: int | None
    max_rows: int | None
    readers_wait: bool


service_options: Final = together(
    click.option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen at."),
    click.option(
        "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), metavar="N",
        help="Port to listen at; 0 for any that is free.",
    ),
    click.option(
        "--token", envvar="ELASTALOG_TOKEN", metavar="T",
        help="Token that grants reading and writing.  [default: ELASTALOG_TOKEN, or one that is made and printed]",
    ),
    click.option("--read-token", metavar="T", help="Token that grants reading."),
    click.option("--no-token", is_flag=True, help="No token: everyone who can reach the address may read and write."),
    click.option(
        "--allow-host", multiple=True, metavar="NAME",
        help="Another host name of the service, for example behind a proxy.",
    ),
    click.option(
        "--store", type=click.Path(), metavar="DIR",
        help="Store for the epochs of a PROGRAM.  [default: a temporary one]",
    ),
    click.option("--retention", type=click.IntRange(1), metavar="N", help="Number of past epochs to keep."),
    click.option(
        "--question-time", callback=duration, metavar="TIME", help="Time limit of a question, as 30s.  [default: 10s]"
    ),
    click.option(
        "--question-memory", callback=memory_size, metavar="SIZE",
        help="Memory that a question may allocate.  [default: 512M]",
    ),
    click.option(
        "--replicas", type=click.IntRange(1), metavar="N",
        help="Number of concurrent previews and repairs, each on a copy of the facts.  [default: 1]",
    ),
    click.option("--max-body", callback=memory_size, metavar="SIZE", help="Largest request.  [default: 64M]"),
    click.option("--max-rows", type=click.IntRange(1), metavar="N", help="Most rows of a page.  [default: 10000]"),
    click.option(
        "--readers-wait", is_flag=True,
        help="Keep facts once instead of twice: readers wait for commits, and a question that blocks one is refused.",
    ),
)  # fmt: skip
"""The options of `ServiceOptions`; the command takes them as keyword arguments of the same names."""


def split_options(options: dict[str, Any]) -> tuple[ServiceOptions, SessionOptions]:
    """What a command was told, by whom it concerns."""
    names = ServiceOptions.__dataclass_fields__
    own = {name: value for name, value in options.items() if name in names}
    return ServiceOptions(**own), SessionOptions(**{n: v for n, v in options.items() if n not in names})


@contextmanager
def opened_service(
    path: str, wanted: ServiceOptions, options: SessionOptions, form: str, verbosity: Verbosity
) -> Iterator[tuple[Service, Settings]]:
    """The service of the program or store at a path, and who may ask it, for a block."""
    settings = settings_of(wanted)  # before any work
    from elastalog.web.service import Service

    with ExitStack() as stack:
        session = _session(path, wanted, options, form, verbosity, stack)
        service = Service(session, settings.limits, is_twofold=not wanted.readers_wait)
        stack.callback(service.close)
        yield service, settings


def _session(
    path: str, wanted: ServiceOptions, options: SessionOptions, form: str, verbosity: Verbosity, stack: ExitStack
) -> Session:
    if is_store(path) or Path(path).is_dir():
        if wanted.store is not None:
            raise click.UsageError("--store is for programs")
        return writing(path, form, verbosity, options.functors)
    store = wanted.store
    if store is None:
        # Earlier epochs can be looked at while the service runs.
        store = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elastalog-"))) / "store")
    program = load_program(path, form, verbosity)
    return open_session(program, options, form=form, verbosity=verbosity, store=store, retention=wanted.retention)


def settings_of(wanted: ServiceOptions) -> Settings:
    """Who may ask. Raises ElastalogError when others could reach a service that asks for no token, and nobody said
    that they may."""
    from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
    from elastalog.web.settings import Settings

    if wanted.no_token and (wanted.token or wanted.read_token):
        raise click.UsageError("--no-token and a token exclude each other")
    is_own = _is_own(wanted.host)
    token = None if wanted.no_token else wanted.token
    if token is None and not wanted.no_token:
        if not is_own:
            told = f"other machines can reach {wanted.host}, and no token is given"
            advice = "give --token or ELASTALOG_TOKEN, or say --no-token"
            raise ElastalogError([Diagnostic("E0935", told, help=advice)])
        token = secrets.token_urlsafe(24)
    hosts = (*wanted.allow_host, *(() if is_own else (_name(wanted.host),)))
    return Settings(token, wanted.read_token, hosts, _limits(wanted))


def _limits(wanted: ServiceOptions) -> Limits:
    from dataclasses import replace

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
