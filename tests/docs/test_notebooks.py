"""The notebooks show what they give: executing them again gives the outputs that are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra `docs`")
pytest.importorskip("nbclient", reason="notebooks need the extra `docs`")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks_with_outputs_and_without_errors() -> None:
    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        shown = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
        assert len(shown) > 5, path.name
        assert [output for output in shown if output.output_type == "error"] == [], path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_that_are_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from notebooks import executed, outputs

    assert outputs(executed(path)) == outputs(nbformat.read(path, 4))
