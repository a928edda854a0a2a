"""The examples of the README and the tutorial, run as a reader would, in one folder, in order.

A block that begins with the comment of a file name (`// reach.dl`, `# tour.py`) is that file; Python files are run, and
a block `text` right after one is all it prints. In a block `console`, lines after `$ ` are commands, the others what
they print, errors included. Blocks `sh` are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial/first-steps.md")
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?://|#) ([\w.]+\.\w+)\n")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")
_TARGET = re.compile(r"make ([a-z]+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block, and the block `text` that follows it directly, if one does."""

    kind: str
    content: str
    output: str | None

    @property
    def file(self) -> str | None:
        found = _NAME.match(self.content)
        return found.group(1) if found else None


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    blocks = []
    for block, following in zip(found, [*found[1:], None], strict=True):
        is_output = (
            following is not None and following[1] == "text" and not text[block.end() : following.start()].strip()
        )
        blocks.append(Block(block[1], block[2], following[2] if following is not None and is_output else None))
    return blocks


def commands_of(content: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what it prints."""
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Reader:
    """Tries a page in a folder, with `elastalog` and `python` among the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "page"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, rest in (("elastalog", " -m elastalog"), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{rest} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        self.environment |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}

    def run(self, *command: str) -> tuple[str, int]:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, encoding="utf-8", check=False, timeout=300,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        kept = [line for line in done.stdout.splitlines(keepends=True) if not line.startswith("compiling the kernel")]
        return "".join(kept), done.returncode


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_example_does_what_the_page_says(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    tried = 0
    for block in blocks_of(page):
        if block.file is not None:
            (reader.folder / block.file).write_text(block.content, encoding="utf-8")
        if block.kind == "python":
            assert block.file is not None, f"a Python example without a file name: {block.content}"
            output, code = reader.run("python", block.file)
            assert code == 0, output
            assert block.output is None or output == block.output
            tried += 1
        elif block.kind == "console":
            for command, expected in commands_of(block.content):
                output, _ = reader.run("bash", "-c", command)
                assert output == expected, command
                tried += 1
    assert tried > 2


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_leads_to_a_file(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in _LINK.findall(text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(block.content for block in blocks_of(page) if block.kind == "sh")
    inline = "\n".join(re.findall(r"`(make [^`]+)`", text))
    targets = set(_TARGET.findall(f"{blocks}\n{inline}"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert targets <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
