"""Compiled operators do not outlive the pieces that were compiled into them."""

from __future__ import annotations

import os
from pathlib import Path

from elastalog.native.outdated import remove_outdated


def _write(path: Path, seconds: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (seconds, seconds))
    return path


def test_operators_older_than_a_piece_go(tmp_path: Path) -> None:
    later = 4e9  # later than the files of the package that looks
    _write(tmp_path / "joins" / "operators.py", 1)
    _write(tmp_path / "joins" / "pieces.py", later)
    _write(tmp_path / "shells" / "unrelated.py", later + 100)
    old = _write(tmp_path / "joins" / "__pycache__" / "operators.join-1.py311.nbi", later - 1)
    new = _write(tmp_path / "joins" / "__pycache__" / "operators.scan-2.py311.nbi", later + 1)
    assert remove_outdated(tmp_path) == 1
    assert not old.exists()
    assert new.exists()
