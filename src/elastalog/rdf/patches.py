"""Updates as patches of RDF: lines of N-Triples behind `+` or `-`, or RDF Patch (`A`, `D`, `PA`, `PD`, `TX`, `TC`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elastalog.diagnostics.arguments import require_package
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import file_bytes, is_packed
from elastalog.rdf.loading import Files, declaration
from elastalog.rdf.ontology import is_schema
from elastalog.rdf.rules import equality_rules
from elastalog.rdf.vocabulary import CLASS, EQUALITY, PROPERTY, SAME, SAME_AS, TYPE, Names
from elastalog.relations.faults import shown

if TYPE_CHECKING:
    from elastalog.evaluation.changes import Changes

_LINE: Final = re.compile(r"\s*(?:(?P<sign>[+-]|[AD]\b)\s*(?P<triple>\S.*)|(?P<other>(?:H|TX|TC|TA|PA|PD)\b.*|#.*)?)")
_PREFIX: Final = re.compile(r"\s*PA\s+\"?([\w.-]*):?\"?\s+[<\"]?([^\s<>\"]*)[>\"]?\s*\.?\s*$")


@dataclass(frozen=True, slots=True)
class Patch:
    """Triples that come and go, as texts of N-Triples; of several changes of one, the last counts."""

    added: list[tuple[str, str, str]]
    deleted: list[tuple[str, str, str]]
    file: str = "<patch>"


def read_patch(patch: Files | str) -> Patch:
    """The patch in a file, or in a text that has a line end."""
    if isinstance(patch, str) and "\n" in patch:
        return parse_patch(patch, "<patch>")
    path = Path(patch)
    data = file_bytes(path, is_packed(path))
    try:
        return parse_patch(data.decode(), str(path))
    except UnicodeDecodeError as error:
        line, told = data.count(b"\n", 0, error.start), f"byte 0x{data[error.start]:02x} is not UTF-8"
        text = data.split(b"\n")[line].decode("utf-8", "backslashreplace")
        raise _bad(str(path), line + 1, told, text) from None


def parse_patch(text: str, file: str) -> Patch:
    """The patch that a text is."""
    rdf = require_package("pyoxigraph", "rdf")
    lines: list[str] = []
    signs: list[tuple[bool, int]] = []
    begun = (0, 0)  # lines and changes before the transaction
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        found = _LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            raise _bad(file, number, "neither a change nor a line of RDF Patch", line)
        prefix = _PREFIX.match(line)
        command = (found["other"] or "")[:2]
        if command == "TA":  # what the transaction has changed does not count
            lines[begun[0] :] = [one if one.startswith("@prefix") else "" for one in lines[begun[0] :]]
            del signs[begun[1] :]
        if command in ("TX", "TC", "TA"):
            begun = len(lines), len(signs)
        if found["triple"] is not None:
            signs.append((found["sign"] in "+A", number))
            triple = found["triple"].rstrip()
            lines.append(triple if triple.endswith(".") else f"{triple} .")
        else:
            lines.append(f"@prefix {prefix[1]}: <{prefix[2]}> ." if prefix else "")
    try:
        triples = [
            tuple(map(str, (t.subject, t.predicate, t.object)))
            for t in rdf.parse("\n".join(lines).encode(), rdf.RdfFormat.TURTLE)
        ]
    except SyntaxError as error:
        at = error.lineno or 1
        reason = re.sub(r"^Parser error at line \d+ (between columns \d+ and \d+|column \d+): ", "", error.msg)
        raise _bad(file, at, reason[:1].lower() + reason[1:], text.split("\n")[at - 1]) from None
    if len(triples) != len(signs):
        raise _bad(file, 1, "there must be one triple a line", text.split("\n")[0])
    last: dict[Any, bool] = {}
    for (is_added, _), triple in zip(signs, triples, strict=True):
        last[triple] = is_added
    return Patch([t for t, added in last.items() if added], [t for t, added in last.items() if not added], file)


def apply(db: Any, patch: Files | str | Patch, *, source: str | None = None, batch: str | int | None = None) -> Changes:
    """Applies a patch to a session that `load` has made, as one update. New classes and properties get relations;
    axioms cannot come or go so, since rules are made of them."""
    with db.update(source, batch) as update:
        fill(update, db, patch if isinstance(patch, Patch) else read_patch(patch))
    changes: Changes = update.changes
    return changes


def fill(update: Any, db: Any, patch: Patch) -> None:
    """Puts the changes of a patch into an update."""
    names = Names.in_program(db)
    axiom = next((triple for triple in (*patch.added, *patch.deleted) if is_schema(triple)), None)
    if axiom is not None:
        raise error("E0531.fill", location=patch.file, short=" ".join(map(names.short, axiom)))
    update.add_rules("\n".join(_additions(db, names, patch)))
    for triples, change in ((patch.added, update.insert), (patch.deleted, update.delete)):
        rows: dict[str, list[tuple[str, ...]]] = {}
        for triple in triples:
            if change == update.delete and not _is_known(names, triple):
                continue  # what was never there
            relation, values = names.fact(triple)
            rows.setdefault(relation, []).append(values)
        for relation, listed in rows.items():
            change(relation, listed)


def _is_known(names: Names, triple: tuple[str, str, str]) -> bool:
    return triple[1] in EQUALITY or _node(triple) in names.relations


def _node(triple: tuple[str, str, str]) -> tuple[str, str]:
    return (CLASS, triple[2]) if triple[1] == TYPE else (PROPERTY, triple[1])


def _additions(db: Any, names: Names, patch: Patch) -> Iterator[str]:
    """Declarations of new classes and properties, and the rules of equality when it is first used."""
    has_equality = any(f"{SAME}(x, y)." in line for line in db.program.tree.source.text.splitlines() if ":-" in line)
    new = [_node(triple) for triple in patch.added if not _is_known(names, triple)]
    made = Names.of([*names.relations, *new], names.prefixes, {})
    taken = set(names.relations.values())
    for node in dict.fromkeys(new):
        name = made.relations[node]
        while name in taken:
            name += "_"
        taken.add(name)
        names.relations[node] = name
        yield declaration(*node, name)
        if has_equality:
            yield from equality_rules(node[0], name)
    if not has_equality and any(triple[1] == SAME_AS for triple in patch.added):
        for (kind, _), name in names.relations.items():
            yield from equality_rules(kind, name)


def _bad(file: str, line: int, reason: str, text: str) -> ElastalogError:
    return error("E0533", location=f"{file}:{line}", reason=reason, text=shown(text))
