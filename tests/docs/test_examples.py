"""The documentation is true: examples do what the pages say, links lead somewhere, references leave nothing out.

The examples of the README and the tutorial are run as a reader would run them, in one folder, in order.

A block that begins with the comment of a file name (`// reach.dl`, `# tour.py`) is that file; Python files are run, and
a block `text` right after one is all it prints. In a block `console`, lines after `$ ` are commands, the others what
they print, errors included. Blocks `sh` are not run there; those of the how-to guides are, without looking at output.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from itertools import zip_longest
from pathlib import Path

import click
import pytest

import elastalog
from elastalog.cli.main import COMMANDS, cli
from elastalog.session import Session
from tests import warm
from tests.closures import REACH

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = (
    "load-facts", "update-and-watch-changes", "change-rules", "choose-a-strategy", "explain-a-fact",
    "ask-questions", "run-a-service", "coming-from-pandas", "coming-from-rdf", "debug-a-policy", "decide-requests",
    "keep-a-store", "recipes",
)  # fmt: skip
REFERENCE = ("python", "engine")
PAGES = ("README.md", "docs/tutorial/first-steps.md")
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?://|#) ([\w.]+\.\w+)\n")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")
_TARGET = re.compile(r"make ([a-z]+)")


ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm.programs(tmp_path_factory.mktemp("programs"), ENVIRONMENT) as made:
        yield made


@pytest.fixture
def reader(tmp_path: Path, programs: Path) -> Reader:
    return Reader(tmp_path, programs)


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
    for block, following in zip_longest(found, found[1:]):
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

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder / "page"
        self.folder.mkdir()
        self.environment = {**ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, *command: str) -> tuple[str, int]:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, encoding="utf-8", check=False, timeout=300,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        kept = [
            line for line in done.stdout.splitlines(keepends=True) if not line.startswith(("compiling ", "compiled "))
        ]
        return "".join(kept), done.returncode


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_example_does_what_the_page_says(page: str, reader: Reader) -> None:
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


def scripts_of(page: str) -> Iterator[tuple[str, str]]:
    """What is run of a guide, Python or commands. A Python block that imports nothing goes on where the one before it
    has ended: they are run as one, but that commands between them are run between."""
    script, is_run = "", True
    for block in blocks_of(page):
        begins = block.kind == "python" and "import " in block.content
        if (begins or block.kind == "sh") and not is_run:
            yield "python", script
            is_run = True
        if block.kind == "python":
            script, is_run = block.content if begins else script + block.content, False
        elif block.kind == "sh":
            yield "sh", block.content
    if not is_run:
        yield "python", script


@pytest.mark.slow
@pytest.mark.parametrize("page", HOW_TO)
def test_every_example_of_a_how_to_guide_runs(page: str, reader: Reader) -> None:
    (reader.folder / "reach.dl").write_text(REACH, encoding="utf-8")
    (reader.folder / "monday.diff").write_text("+edge(7, 8).\n", encoding="utf-8")
    (reader.folder / "facts").mkdir()
    (reader.folder / "facts" / "edge.facts").write_text("1\t2\n2\t3\n3\t4\n", encoding="utf-8")
    (reader.folder / "updates").mkdir()
    (reader.folder / "updates" / "1.diff").write_text("-edge(2, 3).\n", encoding="utf-8")
    (reader.folder / "updates" / "2.diff").write_text("+edge(2, 3).\n", encoding="utf-8")
    for kind, script in scripts_of(f"docs/how-to/{page}.md"):
        output, code = reader.run(*{"python": ("python", "-c"), "sh": ("bash", "-ec")}[kind], script)
        assert code == 0, output


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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_every_option_of_a_command(name: str) -> None:
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    section = re.search(rf"^### `{name}[ `].*?(?=^##)", text + "\n##", re.MULTILINE | re.DOTALL)
    assert section is not None, name
    shared = text[text.index("## Options that several commands have") :]
    command = cli.get_command(click.Context(cli), name)
    told = section[0] + shared
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    assert not [option.opts for option in options if not any(f"`{name}" in told for name in option.opts)]


@pytest.mark.slow
def test_the_example_of_the_home_runs(reader: Reader) -> None:
    (block,) = (block for block in blocks_of("docs/README.md") if block.kind == "python")
    output, code = reader.run("python", "-c", block.content)
    assert code == 0, output
    assert 'delete calls("prices", "vault")' in output


@pytest.mark.slow
@pytest.mark.parametrize("page", REFERENCE)
def test_every_example_of_the_reference_runs(page: str, reader: Reader) -> None:
    script = "\n".join(block.content for block in blocks_of(f"docs/reference/{page}.md") if block.kind == "python")
    output, code = reader.run(
        "python", "-c", f"import warnings\nwarnings.simplefilter('error', DeprecationWarning)\n{script}"
    )
    assert code == 0, output


def members(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def test_the_reference_has_every_public_name_with_an_example() -> None:
    """What is public is `elastalog.PUBLIC`, the members of a session and of its engine, and the options of `open`."""
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in elastalog.__all__ if f"`{name}`" not in text] == []
    tried = "".join(block.content for block in blocks_of("docs/reference/python.md") if block.kind == "python")
    told = [name for name in members(Session) if f"`db.{name}" not in text]
    assert (told, [name for name in members(Session) if f"db.{name}" not in tried]) == ([], ["engine"])
    options = signature(elastalog.open).parameters
    assert [name for name in options if f"| `{name}` |" not in text] == []
    assert [name for name in options if name != "program" and f"{name}=" not in tried] == []
    tried = "".join(block.content for block in blocks_of("docs/reference/engine.md") if block.kind == "python")
    assert [name for name in members(elastalog.Engine) if f"engine.{name}" not in tried] == []
