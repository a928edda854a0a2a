"""A window: one browser's view of the workbench, and what it shows now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from nicegui import Client, ui

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.web.pages.address import Address
from elastalog.web.pages.bench import Bench
from elastalog.web.pages.controls import raw
from elastalog.web.pages.live import Listener
from elastalog.web.pages.markup import faults_html

Asked = ParamSpec("Asked")
T = TypeVar("T")


class Window:
    """`may_write`: whether whoever looks may change anything."""

    def __init__(self, bench: Bench, client: Client, may_write: bool) -> None:
        self.bench = bench
        self.client = client
        self.may_write = may_write
        self.address = Address("/")
        self._page_listeners: list[Listener] = []

    @property
    def epoch(self) -> int | None:
        """The epoch that is looked at; None for the latest."""
        return self.address.epoch

    @property
    def can_change(self) -> bool:
        """Whether what is shown can be changed from here: it is the present, and whoever looks may."""
        return self.may_write and self.epoch is None

    def enter(self, address: Address) -> None:
        """Another page, or another state of it, is shown from now on."""
        self.address = address
        self._page_listeners.clear()

    def follow(self, listener: Listener) -> None:
        """Called after every commit for as long as the page is shown, unless it shows an earlier epoch."""
        self._page_listeners.append(listener)

    async def tell(self) -> None:
        """Something was committed."""
        if self.client.is_deleted or self.epoch is not None:
            return
        for listener in list(self._page_listeners):
            told = listener()
            if told is not None:
                await told

    def to(self, path: str, **parameters: object) -> Address:
        """The address of something, at the epoch that is looked at."""
        return Address.of(path, **parameters).with_(epoch=self.epoch)

    def go(self, address: Address) -> None:
        """Shows something else; the browser can go back."""
        with self.client:
            ui.navigate.to(str(address))

    def note(self, address: Address) -> None:
        """Says in the address what is shown already."""
        self.address = address
        with self.client:
            ui.navigate.history.replace(str(address))

    async def ask(self, question: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Asks the service, in another thread and within its limits: other windows are served meanwhile."""
        return await self.bench.service.call(question, *asked, **options)

    async def attempt(self, action: Callable[[], Awaitable[T]], where: ui.element) -> T | None:
        """Does something; what goes wrong for a reason that the user can act on is shown in a place."""
        where.clear()
        try:
            return await action()
        except ElastalogError as error:
            with where:
                raw(faults_html(error.diagnostics))
            return None
