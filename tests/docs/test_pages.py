"""The pages hang together: each is reached from the first, links have their anchors, and what is named is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FIRST = DOCS / "README.md"
PAGES = sorted(DOCS.glob("**/*.md"))
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md", "benchmarks/HISTORY.md")]

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_PYTHON_FILE = re.compile(r"`([\w/]+\.py)`")


def text_of(page: Path) -> str:
    """A page without its code blocks."""
    return _CODE.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[tuple[Path, str]]:
    """The pages of the repository that a page links to, with the anchor, or nothing."""
    found = [link.partition("#") for link in _LINK.findall(text_of(page)) if "://" not in link]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in found]


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as hosts of repositories make them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text_of(page)))
    return {heading.replace(" ", "-") for heading in plain}


def test_every_page_is_reached_from_the_first() -> None:
    reached = {FIRST}
    pending = [FIRST]
    while pending:
        following = {page for page, _ in links_of(pending.pop()) if page in PAGES} - reached
        reached |= following
        pending += following
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_its_anchor(page: Path) -> None:
    dead = [
        (str(target), anchor)
        for target, anchor in links_of(page)
        if not target.exists() or (anchor and anchor not in anchors_of(target))
    ]
    assert dead == []


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_source_file_that_is_named_exists(page: Path) -> None:
    folders = ("src", "tests", "benchmarks", "scripts")
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = set(_PYTHON_FILE.findall(text_of(page)))
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in files)] == []


def layers_of_the_contract() -> list[set[str]]:
    """The layers that import-linter checks, from above."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == "layers")
    return [{name.strip(" ()") for name in layer.split("|")} for layer in layers]


def test_contributing_shows_the_layers_that_are_checked() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.partition("## Layers")[2].partition("```\n")[2].partition("```")[0]
    shown = [set(re.split(r" {3,}", line)[0].split()) for line in block.splitlines()]
    assert shown == layers_of_the_contract()


def test_the_glossary_can_be_kept_in_mind() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ", text.partition("## Words")[2].partition("\n## ")[0], re.MULTILINE)
    assert len(rows) - 1 <= 25  # the first is the heading


def test_every_package_is_in_a_layer() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "elastalog").glob("*/__init__.py")}
    assert packages <= set().union(*layers_of_the_contract())


@pytest.mark.parametrize("name", ["layers", "life"])
def test_pictures_of_the_code_are_those_of_today(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python scripts/pictures.py` draws them again."""
    from scripts import pictures

    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    getattr(pictures, f"{name}_picture")()
    drawn = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
