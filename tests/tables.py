"""Tables of cases as files beside the tests: texts as they are, without quotes and escapes.

`test_terms.cases` has those of `test_terms.py`. A block begins with `=== name of the test`; each line is a case, its
columns parted by ` ⇒ `. In a text, a line break is written `⏎`, a tabulator `⇥`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def table(test_file: str, name: str, columns: int = 0) -> list[Any]:
    """The cases of a block: texts, or tuples of them. With so many `columns`, the last one is a tuple of all others."""
    blocks = Path(test_file).with_suffix(".cases").read_text(encoding="utf-8").split("=== ")
    (found,) = (block for block in blocks if block.partition("\n")[0] == name)
    rows = [tuple(re.split(" ⇒(?: |$)", line)) for line in found.strip("\n").split("\n")[1:]]
    rows = [tuple(text.replace("⏎", "\n").replace("⇥", "\t") for text in row) for row in rows]
    assert rows
    if columns:
        return [(*row[: columns - 1], row[columns - 1 :]) for row in rows]
    return [row if len(row) > 1 else row[0] for row in rows]
