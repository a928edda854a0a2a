"""Who may use a service, and the limits of each request and of all together."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from elastalog.diagnostics.diagnostic import LimitReached, error


@dataclass(frozen=True, slots=True)
class Limits:
    """`body`: bytes of a request. `rows`: the most facts of a page, `page`: by default, `export`: both for CSV, Arrow
    and Parquet. `seconds` and `memory` (bytes): the quota of a question, which is cancelled beyond it. `questions`: how
    many are answered at a time, `replicas`: how many of these may change facts temporarily, `concurrent`: reads, and
    commits, beside them, `waiting`: requests that wait. `listeners`: of the change feed, `event_rows`: facts listed in
    one of its events. `depth`: levels of a proof by default. `cache`: bytes of sorted and filtered relations,
    `earlier`: earlier epochs kept open."""

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
    """The service has too many requests at the moment."""


OWN_NAMES = ("localhost", "127.0.0.1", "::1")
"""The names of this machine for itself."""


class Role(Enum):
    """What a client may do: read and ask, or update as well."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Settings:
    """`token` allows reading and writing, `read_token` reading; without both, everyone may do everything. `hosts`:
    names of the service besides those of this machine. Raises ElastalogError for tokens that would admit anyone."""

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
        """Whether no token is required."""
        return self.token is None and self.read_token is None

    @property
    def known_hosts(self) -> frozenset[str]:
        return frozenset(name.lower().strip("[]") for name in (*OWN_NAMES, *self.hosts))
