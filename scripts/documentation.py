"""What `make docs` adds to the pages in docs/: the navigation, and the pages that are generated.

The navigation is `docs/README.md`: each of its headings is a section, each item of its lists that begins with a link a
page. So a page is added in one place, one line, and one that is not listed there is an error of the build.

Generated from what they describe: the Python interface (docstrings of public names), the commands (their help), the
error catalogue, the glossary (the words of CONTRIBUTING.md), the changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Final

import click
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[1]

_DIAGRAMS = re.compile(r'<script type="module">(?:(?!</script>).)*mermaid(?:(?!</script>).)*</script>', re.DOTALL)
_HEADING = re.compile(r"^## (?P<title>.+)$")
_ITEM = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<path>[^)#]+)\)")


def on_config(config: Any) -> Any:
    """Makes the navigation."""
    config.nav = navigation((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the generated pages."""
    for path, (_, make) in GENERATED.items():
        files.append(File.generated(config, path, content=make()))
    return files


BOOSTS: Final = {
    "how-to/": 3.0,
    "tutorial/": 3.0,
    "reference/errors": 0.1,
    "design/": 0.2,
    "papers/": 0.2,
    "changelog": 0.1,
    "history": 0.1,
}
"""How much more, or less, a find on a page counts in the search than one elsewhere, by how its path begins."""


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Ranks pages in the search: guides before references, errors and decisions last."""
    for start, boost in BOOSTS.items():
        if page.file.src_path.startswith(start):
            page.meta["search"] = {"boost": boost}
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """Leaves out what would fetch a library for diagrams from another host: pages have none."""
    return _DIAGRAMS.sub("", output)


def navigation(listed: str) -> list[dict[str, Any]]:
    """The sections of a list of pages, in its order, and in each the pages that are generated for it."""
    sections: dict[str, list[dict[str, str]]] = {}
    title = ""
    for line in listed.splitlines():
        if heading := _HEADING.match(line):
            title = heading["title"]
        elif item := _ITEM.match(line):
            sections.setdefault(title, []).append({item["title"]: item["path"]})
    for path, (place, _) in GENERATED.items():
        section, _, name = place.partition("/")
        sections.setdefault(section, []).append({name: path})
    return [{"Elastalog": "README.md"}, *({section: pages} for section, pages in sections.items())]


# --- pages that are generated ---------------------------------------------------------------------------------------


def public_names() -> str:
    """Every public name of the package, with its docstring, signature and members."""
    import elastalog

    names = [name for name in elastalog.__all__ if not name.startswith("__")]
    first = ["open", "Session", "PendingUpdate", "Relation", "Changes", "Proof", "Absence", "Suggestion"]
    ordered = [*first, *sorted(set(names) - set(first), key=str.lower)]
    shown = {"PendingUpdate": ["insert", "delete", "add_rules", "remove_rules", "read", "commit", "changes", "stats"]}
    parts = [
        f"::: {_home(name)}\n    options:\n      heading: elastalog.{name}\n      toc_label: {name}"
        + (f"\n      members: {shown[name]}\n      show_if_no_docstring: true" if name in shown else "")
        for name in ordered
    ]
    parts += ["::: elastalog.spark\n    options:\n      members_order: alphabetical"]
    introduction = "Generated from the docstrings. [Python](python.md) says the same shorter, by what one wants to do."
    return "\n\n".join(["# Public names", introduction, *parts]) + "\n"


def _home(name: str) -> str:
    """Where a public name is defined: packages hand names on. A union does not know."""
    import elastalog

    found = getattr(elastalog, name)
    module = elastalog.PUBLIC[name] if isinstance(found, UnionType) else found.__module__
    return f"{module}.{name}"


def commands() -> str:
    """The help of every command, as click prints it."""
    from elastalog.cli.main import COMMANDS, cli

    parts = [
        "# Help of every command",
        "As `elastalog COMMAND --help` prints it. [The command line](command-line.md) explains.",
    ]
    context = click.Context(cli, info_name="elastalog", max_content_width=100, **cli.context_settings)
    for name in ("", *COMMANDS):
        command = cli.get_command(context, name) if name else cli
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, max_content_width=100) if name else context
        parts.append(f"## {f'elastalog {name}'.strip()}\n\n```text\n{command.get_help(inner)}\n```")
    return "\n\n".join(parts) + "\n"


def error_catalogue() -> str:
    """Every error code: what it means, a case of it, and the case mended."""
    from elastalog.diagnostics.catalogue import CATALOGUE

    parts = ["# Errors", "What `elastalog explain-error CODE` says."]
    for entry in CATALOGUE.values():
        parts.append(
            f"## {entry.code}: {_plain(entry.title)} {{ #{entry.code.lower()} }}\n\n{_plain(entry.explanation)}"
        )
        for title, text in (("Wrong", entry.example), ("Right", entry.fix)):
            parts.append(f"{title}:\n\n````text\n{text.strip()}\n````")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """A text in which what is no code means itself: `<` begins no tag there."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([<>*_\[\]{}#])", r"\\\1", piece) for piece in pieces)


def glossary() -> str:
    """The words table of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = text.partition("## Words\n")[2].partition("\n## ")[0]
    return _within("# Glossary\n" + words)


def changelog() -> str:
    """CHANGELOG.md."""
    return _within((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def history() -> str:
    """HISTORY.md."""
    return _within((ROOT / "HISTORY.md").read_text(encoding="utf-8"))


def _within(text: str) -> str:
    """A text of the repository's root with links as seen from the pages."""
    here = {"](docs/": "](", "](CHANGELOG.md": "](changelog.md", "](HISTORY.md": "](history.md"}
    for root, page in here.items():
        text = text.replace(root, page)
    return text


GENERATED: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "reference/public-names.md": ("Reference/Public names", public_names),
    "reference/commands.md": ("Reference/Help of every command", commands),
    "reference/errors.md": ("Reference/Errors", error_catalogue),
    "glossary.md": ("Project/Glossary", glossary),
    "changelog.md": ("Project/Changes", changelog),
    "history.md": ("Project/History", history),
}
"""The pages that are generated: by path, their section and title, and what makes them."""
