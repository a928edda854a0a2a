"""Programs with a mark `^` at the place that a test asks about."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from elastalog.editing.reading import Reading, read
from elastalog.editing.scopes import Place
from elastalog.program import read_program_text


class Files:
    """Texts by name; one `^` in one of them is the cursor, and is no part of the text."""

    def __init__(self, **texts: str) -> None:
        self.texts: dict[str, str] = {}
        self.cursor = ("", 0)
        self.folder = tempfile.TemporaryDirectory()
        for name, text in texts.items():
            path = os.path.join(self.folder.name, f"{name}.dl")
            if "^" in text:
                self.cursor = (path, text.index("^"))
                text = text.replace("^", "", 1)
            self.texts[path] = text
            Path(path).write_text(text, encoding="utf-8", newline="")

    def reading(self, name: str = "main") -> Reading:
        return read(os.path.join(self.folder.name, f"{name}.dl"), read_program_text)

    def shown(self, place: Place | None) -> str | None:
        """A place as `file:line:column text`."""
        if place is None:
            return None
        text = self.texts[place.file]
        before = text[: place.span.start]
        name = os.path.basename(place.file).removesuffix(".dl")
        column = place.span.start - (before.rfind("\n") + 1) + 1
        return f"{name}:{before.count(chr(10)) + 1}:{column} {text[slice(*place.span)]}"
