"""Which programs a folder of checkouts holds."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".dl", ".souffle", ".project")
LENGTHS = ("ord(x)", "strlen(x)")
"""A macro that takes the length of a text for its number."""
_INCLUSION = re.compile(r'^\s*[#.]\s*include\s*["<]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A program: files that are included one after the other, under macros. `include`: folders that are searched."""

    repository: str
    commit: str
    name: str
    files: tuple[Path, ...]
    include: tuple[Path, ...]
    macros: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        return f"{self.repository}/{self.name}"

    def text(self, more: str = "") -> str:
        """A program that includes it."""
        lines = [f"#define {name} {value}" for name, value in self.macros]
        return "\n".join([*lines, *(f'#include "{file}"' for file in self.files), more, ""])


def programs(clones: Path) -> Iterator[list[Found]]:
    """The programs of each checkout, whose folder is called after its owner and its name, with a `+` between; of those
    whose names differ only by numbers one after all that come first."""
    for folder in sorted(path for path in clones.iterdir() if path.is_dir()):
        repository, commit = folder.name.replace("+", "/", 1), _commit(folder)
        assemble = ASSEMBLED.get(repository)
        if assemble is not None:
            yield [Found(repository, commit, *rest) for rest in assemble(folder)]
        else:
            yield [
                Found(repository, commit, str(file.relative_to(folder)), (file,), _folders_above(file, folder))
                for file in _spread(_not_included(folder))
            ]


def _commit(folder: Path) -> str:
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def _folders_above(file: Path, root: Path) -> tuple[Path, ...]:
    return tuple(folder for folder in file.parents if folder == root or root in folder.parents)


def _not_included(root: Path) -> list[Path]:
    """Program files that no other file includes, by what they say, wherever that would be looked for."""
    files = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    included: set[Path] = set()
    for file in files:
        for name in _INCLUSION.findall(file.read_text(encoding="utf-8", errors="replace")):
            for folder in _folders_above(file, root):
                target = (folder / name).resolve()
                if target.is_file() and target != file.resolve():
                    included.add(target)
                    break
    return [file for file in files if file.resolve() not in included]


def _spread(files: list[Path]) -> list[Path]:
    families = Counter[str]()
    order = []
    for file in files:
        family = re.sub(r"\d+", "", str(file))
        order.append((families[family], file))
        families[family] += 1
    return [file for _, file in sorted(order)]


# --- code bases whose own tools put their programs together --------------------------------------------------------

_Assembled = Iterator[tuple[str, tuple[Path, ...], tuple[Path, ...], tuple[tuple[str, str], ...]]]


def _doop(root: Path) -> _Assembled:
    logic = root / "souffle-logic"
    factory = next(root.rglob("DoopAnalysisFactory.groovy")).read_text(encoding="utf-8")
    listed = factory.partition("availableConfigurations")[2].partition("]")[0]
    for analysis, configuration in re.findall(r'"([^"]+)"\s*:\s*"([^"]+)"', listed):
        parts = ("facts/facts.dl", "basic/basic.dl", f"analyses/{analysis}/analysis.dl")
        files = tuple(logic / part for part in (*parts, "main/mocking/mocking-representative-subtypes.dl"))
        if files[2].is_file():
            macros = (("X_STATS_NONE", ""), ("CONFIGURATION", configuration))
            yield analysis, files, (logic, *(file.parent for file in files)), macros


def _ddisasm(root: Path) -> _Assembled:
    datalog = root / "src" / "datalog"
    for name in ("ARCH_AMD64", "ARCH_IA32", "ARCH_ARM32", "ARCH_ARM64", "ARCH_MIPS32"):
        yield name, (datalog / "main.dl",), (datalog,), ((name, ""),)


def _cclyzerpp(root: Path) -> _Assembled:
    for name in ("subset", "unification", "debug"):
        yield name, (root / "datalog" / f"{name}.project",), (root / "datalog",), ()


def _gigahorse(root: Path) -> _Assembled:
    for file in (root / "logic" / "main.dl", *sorted((root / "clients").glob("*.dl"))):
        yield str(file.relative_to(root)), (file,), (file.parent, root), ()


ASSEMBLED = {
    "plast-lab/doop": _doop,
    "GrammaTech/ddisasm": _ddisasm,
    "GaloisInc/cclyzerpp": _cclyzerpp,
    "nevillegrech/gigahorse-toolchain": _gigahorse,
}
