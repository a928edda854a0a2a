"""Cached operators do not outlive the pieces that were compiled into them."""

from __future__ import annotations

import os
from pathlib import Path

from elastalog.jit.sources import DIGEST, FOLDERS, digest_of, remove_outdated


def _package(root: Path) -> Path:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "pieces.py").write_text("ONE = 1\n")
    return root


def test_a_changed_piece_changes_the_digest(tmp_path: Path) -> None:
    package = _package(tmp_path)
    digests = {digest_of(package)}
    for folder in FOLDERS:
        (package / folder / "pieces.py").write_text("ONE = 11\n")
        digests.add(digest_of(package))
    os.utime(package / "jit" / "pieces.py", (1, 1))
    digests.add(digest_of(package))
    assert len(digests) == len(FOLDERS) + 2
    room = package / "backends" / "kernel" / "store"
    room.mkdir()
    (room / "pieces.py").write_text("ONE = 1\n")
    assert digest_of(package) not in digests
    digests.add(digest_of(package))
    (package / "jit" / ".#pieces.py").symlink_to("nowhere")
    assert digest_of(package) in digests


def test_operators_of_other_sources_go(tmp_path: Path) -> None:
    cache = tmp_path / "joins" / "__pycache__"
    cache.mkdir(parents=True)
    names = [f"joins.{name}.py311.{kind}" for name in ("a-11-1", "a-22-1") for kind in ("nbi", "1.nbc")]
    for name in (*names, "joins.cpython-311.pyc"):
        (cache / name).touch()
    assert remove_outdated(tmp_path, "22") == 2
    assert sorted(path.name for path in cache.iterdir()) == sorted((*names[2:], "joins.cpython-311.pyc"))


def test_the_cache_knows_the_digest() -> None:
    from elastalog.backends.kernel.store import set_table

    set_table.find.compile()  # type: ignore[attr-defined]
    cached = list((Path(set_table.__file__).parent / "__pycache__").glob(f"set_table.find-{DIGEST}-*.nbi"))
    assert len(cached) == 1
    assert set_table.find.function.__qualname__ == "find"  # type: ignore[attr-defined]
