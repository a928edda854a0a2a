"""Who may talk to a service, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from elastalog.web.limits import Limits

OWN_NAMES = ("localhost", "127.0.0.1", "::1")
"""What this machine calls itself."""


class Role(Enum):
    """What somebody may do: read and ask, or update as well."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Settings:
    """`token` may read and write, `read_token` may read; without both everybody may do all. `hosts`: the names that the
    service is known by, beside those of this machine."""

    token: str | None = None
    read_token: str | None = None
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self.token is None and self.read_token is None

    @property
    def known_hosts(self) -> frozenset[str]:
        return frozenset(name.lower().strip("[]") for name in (*OWN_NAMES, *self.hosts))
