"""Who is looking: commits of anybody reach every open window, in the loop that serves it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from elastalog.diagnostics.diagnostic import ElastalogError

if TYPE_CHECKING:
    from elastalog.web.service import Service

log = logging.getLogger("elastalog.web")

Listener = Callable[[], Awaitable[None] | None]


class Live:
    """Windows that are open. While there are any, one task listens to the service for all of them; commits that come
    while windows are brought up to date are shown together."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: dict[int, Listener] = {}
        self._task: asyncio.Task[None] | None = None

    def join(self, key: int, listener: Listener) -> None:
        """From now on a window is told, in the loop that calls this."""
        self._listeners[key] = listener
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())

    def leave(self, key: int) -> None:
        """A window has gone."""
        self._listeners.pop(key, None)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    def __len__(self) -> int:
        return len(self._listeners)

    def tell(self) -> None:
        """Something else has changed that all windows show. To be called in their loop."""
        if self._listeners:
            asyncio.get_running_loop().create_task(self._tell())

    async def _listen(self) -> None:
        known = self._service.epoch
        while not self._service.feed.is_closed:
            try:
                event = await self._service.feed.after(known)
            except ElastalogError:
                # What happened since an epoch that is no longer kept: the present is shown all the same.
                known = self._service.epoch
            else:
                if event is None:
                    continue
                known = event.epoch
            await self._tell()

    async def _tell(self) -> None:
        for listener in list(self._listeners.values()):
            try:
                told = listener()
                if told is not None:
                    await told
            except Exception:
                log.exception("a window could not be brought up to date")
