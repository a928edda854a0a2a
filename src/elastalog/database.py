"""`Database`: a session in this process, or a client of a service elsewhere. Both have the same calls, with the same
arguments and the same kinds of answers, but for those that `deprecated.ONLY_OF_SESSIONS` names.
"""

from __future__ import annotations

from typing import TypeAlias

from elastalog.client.client import Client
from elastalog.session.session import Session

Database: TypeAlias = Session | Client
"""A session in this process, or a client of a service elsewhere, for code that works with both."""
