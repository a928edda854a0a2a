"""Records a session at the terminal as SVG: `python scripts/record.py` writes docs/pictures/session.svg.

The commands are really run, in a folder of their own; what they print is what is shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "docs" / "pictures" / "session.svg"
PROGRAM: Final = """.decl edge(from: number, to: number)
.input edge
.decl path(from: number, to: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.output path
"""
COMMANDS: Final = (
    "elastalog -q init reach.store reach.dl -F facts",
    "elastalog query reach.store 'path(1, X)'",
    "printf '+edge(4, 5).\\n-edge(2, 3).\\n' > monday.diff",
    "elastalog -q apply reach.store monday.diff --show-changes",
    "elastalog explain reach.store 'path(3, 5)' --format tree",
    "elastalog debug reach.store --missing 'path(1, 3)'",
)
COLUMNS: Final = 84


def recorded(commands: tuple[str, ...] = COMMANDS) -> str:
    """The session, as SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        (folder / "bin" / "elastalog").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m elastalog "$@"\n')
        (folder / "bin" / "elastalog").chmod(0o755)
        (folder / "reach.dl").write_text(PROGRAM)
        (folder / "facts").mkdir()
        (folder / "facts" / "edge.facts").write_text("1\t2\n2\t3\n3\t4\n")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8"}
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, text=True, check=True, capture_output=True
            )
            console.print(Text("$ ", "bold green") + Text(command, "bold"))
            console.print(Text(done.stdout.rstrip("\n")), end="\n" if done.stdout else "")
    drawn = console.export_svg(title="elastalog", theme=MONOKAI, unique_id="session")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # fonts of another host


def main() -> None:
    TARGET.write_text(recorded(), encoding="utf-8")


if __name__ == "__main__":
    main()
