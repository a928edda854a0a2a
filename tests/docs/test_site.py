"""The site is built from the pages without a warning, asks nothing of other hosts, and has what it generates."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import elastalog
from elastalog.cli.main import COMMANDS
from elastalog.diagnostics.catalogue import CATALOGUE

pytest.importorskip("mkdocs", reason="the site needs the extra `docs`")
pytestmark = pytest.mark.xdist_group("site")  # it is built once, by one test process

ROOT = Path(__file__).resolve().parents[2]
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|import\(["']https?://[^"']*"""
    r"""|(?:url\(|@import\s)\s*["']?(?:https?:)?//[^"')\s]*"""
)
"""What a page loads by itself from another host; links that a reader follows are none."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    asked = [
        (str(path.relative_to(site)), found)
        for kind in ("html", "css")
        for path in site.rglob(f"*.{kind}")
        for found in _LOADED.findall(path.read_text(encoding="utf-8"))
    ]
    assert asked == []
    # The theme's own script fetches a library for diagrams if a page has one.
    assert not any('class="mermaid"' in path.read_text(encoding="utf-8") for path in site.rglob("*.html"))


def test_the_pattern_finds_what_a_page_would_load() -> None:
    assert _LOADED.findall('<link rel="stylesheet" href="https://fonts.example/css?family=X">') != []
    assert _LOADED.findall('<script src="//cdn.example/a.js"></script> <a href="https://example.org">out</a>') == [
        '<script src="//cdn.example/a.js'
    ]
    assert _LOADED.findall("@font-face{src:url(https://example.org/a.woff)}") == ["url(https://example.org/a.woff"]


def test_every_public_name_has_its_entry(site: Path) -> None:
    text = (site / "reference" / "public-names.html").read_text(encoding="utf-8")
    public = [name for name in elastalog.__all__ if name != "__version__"]
    assert [name for name in public if f"elastalog.{name}" not in text] == []


def test_every_command_has_its_help(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'id="elastalog-{name}"' not in text] == []
    assert "--bad-rows" in text
    assert text.count("-h, --help") == len(COMMANDS) + 1


def test_every_error_code_is_in_the_catalogue(site: Path) -> None:
    text = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    assert [code for code in CATALOGUE if f'id="{code.lower()}"' not in text] == []


def test_the_search_ranks_guides_before_errors(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    boosts = {entry["location"].partition("#")[0]: entry.get("boost", 1.0) for entry in index}
    assert boosts["how-to/recipes.html"] > boosts["reference/language.html"] > boosts["reference/errors.html"]
    assert boosts["tutorial/first-steps.html"] > boosts["changelog.html"]


def test_a_session_is_shown_with_all_its_calls(site: Path) -> None:
    text = (site / "reference" / "public-names.html").read_text(encoding="utf-8")
    calls = [name for name in dir(elastalog.Session) if not name.startswith("_")]
    assert [name for name in calls if not re.search(rf'id="[\w.]*Session\.{name}"', text)] == []


def test_the_changelog_is_short_and_leads_to_the_history(site: Path) -> None:
    text = (site / "changelog.html").read_text(encoding="utf-8")
    assert 'href="history.html"' in text
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split()) < 1_000


def test_the_home_has_a_pitch_a_picture_commands_and_an_example(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert "keeps its answers up to date" in text
    assert 'src="pictures/workbench.png"' in text
    assert "workbench" in text
    assert "suggest" in text


def test_the_glossary_has_the_words_of_contributing(site: Path) -> None:
    text = (site / "glossary.html").read_text(encoding="utf-8")
    assert "<td>derivation</td>" in text
    assert "hidden relation" in text


@pytest.mark.slow
def test_the_recording_is_what_the_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from record import TARGET, recorded

    assert recorded() == TARGET.read_text(encoding="utf-8")


@pytest.mark.slow
def test_pictures_show_what_the_engine_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing them again gives the files that are there."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import pictures

    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    pictures.main()
    for path in (ROOT / "docs" / "pictures").glob("*.svg"):
        if (tmp_path / path.name).exists():
            assert (tmp_path / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), path.name
    assert len(list(tmp_path.iterdir())) == 5
