"""Facts for a program that brings none: typed, at random, of few values, so that they join."""

from __future__ import annotations

import gzip
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from elastalog.analysis.program import Base, CheckedProgram, Directive, Part, Relation, StructuredType

_BESIDE = (".", "facts", "input", "inputs", "data", "in")
_LARGEST = 8 << 20
_DEPTH = 3
FEWEST = 10
"""Facts a relation that lead nowhere round: in each of them values ascend from column to column."""


class Unreadable(Exception):
    """An input that no file can be made for."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a relation is read from."""

    relation: Relation
    name: str
    directive: Directive | None

    def parameter(self, name: str, default: str = "") -> str:
        return default if self.directive is None else self.directive.parameters.get(name, default)


def inputs(program: CheckedProgram) -> list[Input]:
    """The files of all `.input`s, and one for every relation that would stay empty. Raises Unreadable."""
    found = []
    given = {rule.head.relation for rule in program.rules} | {fact.relation for fact in program.facts}
    for relation in program.relations.values():
        told = [directive for directive in relation.directives if directive.kind == "input"]
        for directive in told:
            one = Input(relation, directive.parameters.get("filename", f"{relation.name}.facts"), directive)
            kind = one.parameter("IO", "file").lower()
            if kind != "file" or one.parameter("columns") or one.name.startswith("/") or ".." in one.name:
                raise Unreadable(f"reads {kind if kind != 'file' else 'columns or files elsewhere'}")
            found.append(one)
        if not told and relation.name not in given:
            found.append(Input(relation, f"random.{relation.name}.facts", None))
    return found


def given_folder(beside: Path, wanted: list[Input]) -> Path | None:
    """A folder beside the program that has all files which it asks for itself."""
    names = {one.name for one in wanted if one.directive is not None}
    for folder in (beside / name for name in _BESIDE):
        files = [folder / name for name in names]
        if files and all(file.is_file() for file in files) and sum(file.stat().st_size for file in files) <= _LARGEST:
            return folder
    return None


def provide(wanted: list[Input], given: Path | None, folder: Path, rows: int, random: Random, text: str) -> None:
    """Writes all files into a folder: those that are given, others at random."""
    values = Values(random, text, rows)
    for one in wanted:
        path = folder / one.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if given is not None and one.directive is not None:
            shutil.copyfile(given / one.name, path)
            continue
        delimiter = one.parameter("delimiter", "\t").replace("\\t", "\t")
        lines = list(dict.fromkeys(values.line(one.relation, delimiter) for _ in range(rows)))
        if one.parameter("headers").lower() == "true":
            lines.insert(0, delimiter.join(attribute.name for attribute in one.relation.attributes))
        data = "".join(f"{line}\n" for line in lines).encode()
        is_packed = one.parameter("compress").lower() == "true" or one.name.endswith(".gz")
        path.write_bytes(gzip.compress(data) if is_packed else data)


Structures = Mapping[str, StructuredType]


class Values:
    """Values of every type, out of small pools: some that the text of the program names, others that it does not."""

    def __init__(self, random: Random, text: str, rows: int) -> None:
        # Of few facts most join; of many about one with each, or closures would be all pairs.
        self.ascends = rows == FEWEST
        size, self.share = (2 * rows, 0.1) if self.ascends else (rows // 2, 0.4) if rows < 50 else (rows, 0.05)
        self.random = random
        texts = sorted(set(re.findall(r'"([\w./:<>@#*+-]+)"', text)))
        numbers = sorted({int(n) for n in re.findall(r"(?<![\w.])\d{1,4}(?![\w.])", text)})
        self.named = {Base.SYMBOL: texts, Base.NUMBER: [str(n) for n in numbers], Base.UNSIGNED: [], Base.FLOAT: []}
        self.named[Base.UNSIGNED] = self.named[Base.NUMBER]
        small = [str(n) for n in range(size)]
        self.others = {
            Base.SYMBOL: [f"v{n}" for n in small],
            Base.NUMBER: small,
            Base.UNSIGNED: small,
            Base.FLOAT: [str(n / 4) for n in range(size)],
        }

    def line(self, relation: Relation, delimiter: str) -> str:
        if not relation.attributes:
            return "()"
        parts = [self.value(a.base, a.structures or {}, a.type_name, 0) for a in relation.attributes]
        for base in (Base.SYMBOL, Base.NUMBER, Base.UNSIGNED) if self.ascends else ():
            places = [i for i, attribute in enumerate(relation.attributes) if attribute.base is base]
            different = {parts[i] for i in places}
            while len(different) < len(places):
                different.add(self.value(base, {}, None, 0))
            for i, part in zip(places, sorted(different, key=lambda value: (len(value), value)), strict=True):
                parts[i] = part
        return delimiter.join(part.replace(delimiter, "_") if delimiter != "," else part for part in parts)

    def value(self, base: Base, structures: Structures, name: str | None, depth: int) -> str:
        if base is Base.RECORD and name is not None:
            return self._structured(structures[name], structures, depth)
        pool: list[str] = self.named[base] if self.random.random() < self.share else []
        return self.random.choice(pool or self.others[base])

    def _structured(self, kind: StructuredType, structures: Structures, depth: int) -> str:
        if "[]" in kind.branches and (depth >= _DEPTH or (depth and self.random.random() < 0.3)):
            return "nil"
        branches = sorted(kind.branches.items())
        if depth >= _DEPTH:
            branches = [min(branches, key=lambda pair: _height(pair[1], structures, frozenset()))]
        name, parts = self.random.choice(branches)
        inner = ", ".join(self.value(part.base, structures, part.structure, depth + 1) for part in parts)
        return f"[{inner}]" if name == "[]" else f"{name}({inner})" if parts else name


def _height(parts: tuple[Part, ...], structures: Structures, above: frozenset[str]) -> float:
    """How deep a value with these parts is at least."""
    heights = [0.0]
    for name in (part.structure for part in parts if part.structure is not None):
        if name in above:
            return math.inf
        branches = structures[name].branches
        if "[]" not in branches:
            heights.append(1 + min(_height(each, structures, above | {name}) for each in branches.values()))
    return max(heights)
