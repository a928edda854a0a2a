"""The page of debugging prints what it says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-what-broke-it.md"


def test_the_page_prints_what_it_says() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    printed = StringIO()
    known: dict[str, object] = {}
    with redirect_stdout(printed):
        for block in blocks:
            exec(block, known)
    expected = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == expected
