"""`Database`: a session in this process, or a client of a service. Both have the same methods, with the same arguments
and kinds of answers, except those listed in `deprecated.ONLY_OF_SESSIONS`."""

from __future__ import annotations

from typing import TypeAlias

from elastalog.client.client import Client
from elastalog.session.session import Session

Database: TypeAlias = Session | Client
"""A session in this process or a client of a service, for code that works with both."""
