"""Who may talk to a service, and what one request, and all of them together, may ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from elastalog.diagnostics.diagnostic import LimitReached, error


@dataclass(frozen=True, slots=True)
class Limits:
    """`body`: bytes that a request may bring. `rows`: facts a page may hold, `page`: those it holds unless told,
    `export`: both for CSV, Arrow and Parquet. `seconds`: how long a question may take, from when it is asked, `memory`:
    bytes that it may allocate; then it is cancelled. `questions`: those that are answered at a time, `replicas`: those
    among them that change facts for a moment, `concurrent`: reads, and commits, beside them, `waiting`: whatever waits
    for its turn. `listeners`: of the change feed, `event_rows`: facts that one event of it names. `depth`: levels of a
    proof unless told. `cache`: bytes kept of sorted and filtered relations, `earlier`: earlier epochs kept open."""

    body: int = 64 << 20
    rows: int = 10_000
    page: int = 100
    export: int = 10_000_000
    seconds: float = 10.0
    memory: int = 512 << 20
    questions: int = 4
    replicas: int = 1
    concurrent: int = 8
    waiting: int = 256
    listeners: int = 1_000
    event_rows: int = 1_000
    depth: int = 3
    cache: int = 256 << 20
    earlier: int = 2


class Busy(LimitReached):
    """More is asked at once than the service answers; it may answer later."""


OWN_NAMES = ("localhost", "127.0.0.1", "::1")
"""What this machine calls itself."""


class Role(Enum):
    """What a client may do: read and ask, or update as well."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Settings:
    """`token` may read and write, `read_token` may read; without both everybody may do all. `hosts`: the names that the
    service is known by, beside those of this machine. Raises ElastalogError for tokens that keep nobody out."""

    token: str | None = None
    read_token: str | None = None
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        tokens = [token for token in (self.token, self.read_token) if token is not None]
        if not all(token.strip() for token in tokens):
            raise error("E0935.blank")
        if any(token.split() != [token] for token in tokens):
            raise error("E0935.parts")
        if len(set(tokens)) < len(tokens):
            raise error("E0935.same")

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self.token is None and self.read_token is None

    @property
    def known_hosts(self) -> frozenset[str]:
        return frozenset(name.lower().strip("[]") for name in (*OWN_NAMES, *self.hosts))
