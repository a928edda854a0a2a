"""Functions as they were written, as digests that are the same in every version of Python; bytecode is not.

A digest covers the syntax tree without docstrings and annotations. Parsing takes longer than running a small program,
so the digests of a module are kept beside object code, under a digest of its source: a wheel brings them along.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from types import FunctionType
from typing import TYPE_CHECKING, Any

from elastalog.jit import objects
from elastalog.jit.objects import ObjectCode

if TYPE_CHECKING:
    import ast

_UNSEEN = frozenset({"annotation", "kind", "returns", "type_comment", "type_params"})
"""Fields of a syntax tree that compiled code does not depend on; some versions of Python lack them."""

WHOLE = 0
"""Where the digest of a whole module lies: no function begins at this line."""


def tree_of(function: FunctionType) -> str:
    """The digest of a function's syntax tree, without its decorators."""
    space = function.__globals__
    found = _trees(space["__name__"], space["__file__"], space["__loader__"])
    return found[function.__code__.co_firstlineno]


def tree_of_sibling(name: str) -> str:
    """The digest of a module beside this one, which need not be imported."""
    file = os.path.join(os.path.dirname(__file__), f"{name}.py")
    return _trees(f"{__package__}.{name}", file, __loader__)[WHOLE]  # type: ignore[name-defined]


def used() -> dict[str, tuple[str, ObjectCode]]:
    """What has been asked for so far, by the names under which it is kept: the digest of a source, and of its trees."""
    return dict(_used)


_used: dict[str, tuple[str, ObjectCode]] = {}


@cache
def _trees(module: str, file: str, loader: Any) -> dict[int, str]:
    source = loader.get_data(file)  # from an archive, too
    name, digest = f"{module}.trees", blake2b(source, digest_size=12).hexdigest()
    kept = objects.find(name, digest)
    if kept is None:
        kept = ObjectCode(json.dumps(_read(source)).encode(), "", ())
        with suppress(OSError):
            objects.keep(name, digest, kept)
    _used[name] = digest, kept
    return {int(line): tree for line, tree in json.loads(kept.code).items()}


def _read(source: bytes) -> dict[int, str]:
    """The digests of all functions in a source by the line they begin at, with their decorators; and of the whole."""
    import ast

    whole = ast.parse(source)
    found = {WHOLE: _digest(whole)}
    for node in ast.walk(whole):
        if isinstance(node, ast.FunctionDef):
            first = min((each.lineno for each in node.decorator_list), default=node.lineno)
            node.decorator_list = []
            found[first] = _digest(node)
    return found


def _digest(node: ast.AST) -> str:
    return blake2b("".join(_written(node)).encode(), digest_size=12).hexdigest()


def _written(node: Any) -> Iterator[str]:
    """A syntax tree as text, the same in all versions of Python: what is absent and what is empty is left out."""
    if isinstance(node, list):
        for each in node:
            yield from _written(each)
            yield ","
    elif not hasattr(node, "_fields"):
        yield f"{type(node).__name__} {node!r}"
    else:
        yield f"{type(node).__name__}("
        for field in node._fields:
            value = getattr(node, field, None)
            if (value is None and field != "value") or value == [] or field in _UNSEEN:
                continue
            if field == "body" and isinstance(value, list) and _is_text(value[0]):
                value = value[1:]  # a docstring
            yield f"{field}="
            yield from _written(value)
        yield ")"


def _is_text(statement: Any) -> bool:
    return isinstance(getattr(getattr(statement, "value", None), "value", None), str)
