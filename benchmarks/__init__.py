"""Speed and memory, measured as ratios within one run. Nothing here is a test."""

import compileall
import os
from pathlib import Path

# Whole processes are measured as users have them: an installer writes bytecode, and so does the first run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def write_bytecode() -> None:
    """Compiles the package's modules, so that no process that is measured does."""
    import elastalog

    for folder in elastalog.__path__:
        compileall.compile_dir(Path(folder), quiet=2)
