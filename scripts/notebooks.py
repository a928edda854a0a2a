"""Executes the notebooks of the documentation: `python scripts/notebooks.py` writes their outputs anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "docs" / "notebooks"


def executed(path: Path) -> Any:
    """A notebook with the outputs that it gives now, and without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    where = {"metadata": {"path": str(FOLDER)}}
    # What a cell prints comes in one part or in several, as it happens.
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where, coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def outputs(notebook: Any) -> list[list[Any]]:
    """What the cells show."""
    return [cell.get("outputs", []) for cell in notebook.cells]


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
