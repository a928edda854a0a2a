"""Functions without types are compiled ones, and nothing else: those have theirs in decorators."""

from __future__ import annotations

import ast
from pathlib import Path

import elastalog

COMPILED = {"operator", "piece", "inlined", "intrinsic", "view"}
SOURCES = Path(elastalog.__file__).parent
PACKAGES = [SOURCES / name for name in ("backends", "jit", "relations")]


def _decorators(function: ast.FunctionDef) -> set[str]:
    called = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return {
        one.id if isinstance(one, ast.Name) else one.attr for one in called if isinstance(one, ast.Name | ast.Attribute)
    }


def _untyped(node: ast.AST, is_compiled: bool = False) -> list[str]:
    """The functions below a node that lack types and are not compiled, nor part of one that is."""
    found = []
    for child in ast.iter_child_nodes(node):
        is_one = is_compiled
        if isinstance(child, ast.FunctionDef):
            is_one = is_compiled or bool(_decorators(child) & COMPILED)
            if child.returns is None and not is_one:
                found.append(child.name)
        found += _untyped(child, is_one)
    return found


def test_what_has_no_types_is_compiled() -> None:
    files = [file for package in PACKAGES for file in package.rglob("*.py")]
    found = {str(file.relative_to(SOURCES)): _untyped(ast.parse(file.read_text())) for file in files}
    assert {file: names for file, names in found.items() if names} == {}
