"""The versions of Python that are installed on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def other_python(minor: int) -> str | None:
    """An interpreter of Python 3.`minor`, from pyenv or the path; none if there is none that runs."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [str(path) for path in sorted(root.glob(f"versions/3.{minor}.*/bin/python"))]
    for candidate in (*candidates, shutil.which(f"python3.{minor}")):
        if candidate is not None:
            done = subprocess.run(
                [candidate, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True
            )
            if done.stdout.strip() == str(minor):
                return candidate
    return None
