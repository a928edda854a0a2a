"""The front door: `elastalog.open` and the session that it makes."""

from elastalog.session.materialisation import Rows
from elastalog.session.opening import (
    open,  # noqa: A004  # its public name
    query,
)
from elastalog.session.pending import PendingUpdate
from elastalog.session.session import Session
from elastalog.session.settings import Limits, Store

__all__ = ["Limits", "PendingUpdate", "Rows", "Session", "Store", "open", "query"]
