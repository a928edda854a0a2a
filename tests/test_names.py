"""Every code name that a docstring of the package mentions exists: `scripts/names.py` says which do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.names import ROOT, missing


def test_docstrings_mention_what_exists() -> None:
    assert missing(ROOT / "src") == []


@pytest.mark.parametrize(
    ("mentioned", "is_there"),
    [
        ("`tools`", True),
        ("`package.tools`", True),
        ("`tools.Hammer`", True),
        ("`Hammer.hit`", True),
        ("`Mallet.hit`", True),
        ("`Hammer.weight`", True),
        ("`hit()`", True),
        ("see `tools`", True),
        ("`time.monotonic`", True),
        ("`x > 1`", True),
        ("`saw`", False),
        ("`tools.Saw`", False),
        ("`Hammer.saw`", False),
        ("`package.saws`", False),
        ("`time.saw`", False),
        ("see `nail`", False),  # a parameter; there is no such function or module
        ("`sentence`", False),  # a word in a text is no name
    ],
)
def test_what_is_found(mentioned: str, is_there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "tools.py").write_text(
        "class Hammer:\n"
        '    """A tool."""\n'
        "    def __init__(self):\n"
        "        self.weight = 1\n"
        "    def hit(self, nail):\n"
        '        raise ValueError("a sentence")\n'
        "class Mallet(Hammer):\n"
        "    pass\n"
    )
    (folder / "other.py").write_text(f'"""This mentions\n\n{mentioned}."""\n')
    name = mentioned.partition("`")[2].rstrip("`").removesuffix("()")
    expected = [] if is_there else [f"src/package/other.py:3: there is no `{name}`"]
    assert missing(tmp_path / "src", "package") == expected
