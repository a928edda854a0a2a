"""A service elsewhere, by the names of a session: `elastalog.connect`."""

from elastalog.client.client import Client, connect

__all__ = ["Client", "connect"]
