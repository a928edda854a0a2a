"""No files of a package import each other in a circle, not even for types or inside of functions; but for packages that
still have circles, which are listed, and may only become fewer."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
WITH_CIRCLES = {"backends", "cli", "jit", "pipeline", "provenance", "relations", "session"}
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
PACKAGES = sorted({name.split(".")[1] for name in MODULES if name.count(".") > 1} - WITH_CIRCLES)


def imported_by(module: str) -> set[str]:
    """The modules that one imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found - {module}


@pytest.mark.parametrize("package", PACKAGES)
def test_files_of_a_package_import_each_other_in_no_circle(package: str) -> None:
    own = {name for name in MODULES if name.startswith(f"elastalog.{package}.")}
    try:
        TopologicalSorter({name: imported_by(name) & own for name in own}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))
