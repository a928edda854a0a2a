"""An editor for text of the language: colours and findings come from the server, a moment after the last key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nicegui import ui

PAUSE = 0.2
"""Seconds without a key after which the text is looked at."""

Look = Callable[[str], Awaitable[tuple[list[dict[str, Any]], dict[int, str]]]]
"""Looks at a text: the marks to show in it, and hints by line."""


class Editor:
    """`look` is called with the text at first, and after every pause in typing; of looks that overlap the last one
    counts."""

    def __init__(
        self, text: str, look: Look, *, is_open: bool = True, keys: Sequence[tuple[str, Callable[[], Any]]] = ()
    ) -> None:
        self._look = look
        self._turn = 0
        self.element = ui.codemirror(
            text, on_change=self._changed, theme="basicLight", line_wrapping=True, indent="    "
        ).classes("wb-editor")
        if not is_open:
            self.element.disable()
        for key, action in keys:
            self.element.map_key(key, lambda _, action=action: action())

    @property
    def text(self) -> str:
        return self.element.value or ""

    async def show(self, text: str) -> None:
        """Another text in the place of this one."""
        self.element.value = text
        await self.look()

    async def _changed(self) -> None:
        self._turn += 1
        turn = self._turn
        await asyncio.sleep(PAUSE)
        if turn == self._turn:
            await self.look()

    async def look(self) -> None:
        """Looks at the text as it is now."""
        text = self.text
        marks, hints = await self._look(text)
        if text == self.text:
            self.element.decorations = marks
            self.element.line_tooltips = hints
