"""The files that `elastalog export` writes: as `run` writes relations, or as `init` and `run` read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from elastalog.analysis.program import Directive, Relation
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.write import output_file


@dataclass(frozen=True, slots=True)
class Export:
    """A relation with the `.output` by which it is written to `path`; of one that no `.input` reads, `unread` says
    why."""

    relation: Relation
    path: Path
    unread: str | None = None


def exports(relations: Iterable[Relation], root: str, ending: str, *, explicit: bool) -> list[Export]:
    """Where and how relations are written: each to a file that no other has, usually its name with an ending."""
    taken: set[tuple[Path, str | None]] = set()
    found: list[Export] = []
    for relation in relations:
        usual = {"filename": f"{relation.name}.{ending}"}
        wanted, unread = _as_read(relation, usual) if explicit else (_as_written(relation, usual), None)
        for parameters in (wanted, usual):
            directive = Directive("output", parameters, relation.span, is_confined=True)
            table = parameters.get("name", relation.name) if parameters.get("IO") == "sqlite" else None
            path = None
            with suppress(ElastalogError):
                path = output_file(relation, directive, root)
            if path is not None and (path, table) not in taken:
                taken.add((path, table))
                found.append(Export(replace(relation, directives=(directive,)), path, unread))
                break
            reason = "names a file outside of the folder" if path is None else "names the file of another relation"
            unread = f"`.input {relation.name}` {reason}" if explicit else None
    return found


def _as_written(relation: Relation, usual: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters of the text file that `run` writes of a relation, or the usual ones."""
    files = (each.parameters for each in relation.directives if each.kind == "output")
    texts = ({**usual, **found} for found in files if found.get("IO", "file") == "file")
    return usual if usual["filename"].endswith(".parquet") else next(texts, usual)


def _as_read(relation: Relation, usual: Mapping[str, str]) -> tuple[Mapping[str, str], str | None]:
    """The parameters of an `.output` that writes what the `.input` of a relation reads; or the usual ones, and why they
    do not."""
    name, inputs = relation.name, relation.inputs
    if not inputs and any(each.kind == "input" for each in relation.directives):
        return usual, f"`{name}` begins empty (`IO=updates`)"
    if len(inputs) != 1:
        return usual, f"`{name}` has {'several' if inputs else 'no'} `.input`"
    parameters = inputs[0].parameters
    match parameters.get("IO", "file"):
        case "file" if "columns" not in parameters:
            return {**usual, **parameters}, None
        case "json" | "jsonfile":
            return {"filename": f"{name}.json", **parameters}, None
        case "rdf" | "sqlite":
            return parameters, None
        case medium:
            return usual, f"`.input {name}` has `{'columns' if medium == 'file' else f'IO={medium}'}`"
