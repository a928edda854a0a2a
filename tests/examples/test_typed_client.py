"""The typed client, whose types `make check` holds against the package, runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_typed_client_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import typed_client

    assert typed_client.main() == ["cart", "log", "prices", "vault"]
    del sys.modules["typed_client"]


@pytest.mark.slow
def test_pyright_finds_the_same_types(tmp_path: Path) -> None:
    """mypy is part of `make check`."""
    pyright = shutil.which("pyright") or pytest.skip("pyright is not installed")
    settings = f'{{"include": ["client.py"], "extraPaths": ["{ROOT / "src"}"], "typeCheckingMode": "strict"}}'
    (tmp_path / "pyrightconfig.json").write_text(settings)
    shutil.copy(ROOT / "examples" / "typed_client.py", tmp_path / "client.py")
    done = subprocess.run([pyright, "--pythonpath", sys.executable], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
