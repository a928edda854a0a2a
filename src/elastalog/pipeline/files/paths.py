"""Where fact files are: under the root the user gave, unless the program is the user's own and names another place; and
how files appear: whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import nearest
from elastalog.relations.faults import shown

# In the order in which they are looked for. Soufflé's own name comes first and wins; any other must be alone.
SUFFIXES = (
    ".facts", ".facts.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl", ".jsonl.gz", ".ndjson",
    ".ndjson.gz",
)  # fmt: skip


def resolve_under(root: Path | str, relative: str, *, is_confined: bool = True) -> Path:
    """The path of a file named by a program, which must lie under `root` if it is confined: no absolute path, no `..`,
    no symbolic link that leads out. The file need not exist."""
    if not is_confined:
        return Path(root) / relative
    parts = (*PurePosixPath(relative).parts, *PureWindowsPath(relative).parts)
    is_absolute = PurePosixPath(relative).is_absolute() or bool(PureWindowsPath(relative).anchor)
    if not relative or "\0" in relative or is_absolute or ".." in parts:
        raise _outside(root, relative, "it is not a plain path below the folder")
    path = Path(root) / relative
    try:
        is_inside = path.resolve().is_relative_to(Path(root).resolve())
    except (OSError, RuntimeError):  # a loop of symbolic links
        is_inside = False
    if not is_inside:
        raise _outside(root, relative, "a symbolic link leads out of the folder")
    return path


def find_facts(root: Path | str, relation: str, *, for_spark: bool = False) -> Path:
    """The fact file of a relation in a folder: `R.facts` if there is one, otherwise the only one among `R.csv`,
    `R.tsv`, these with `.gz`, `R.parquet`, which may be a folder, and `R.jsonl`. To Spark each may be a folder, and
    there may be an `R.orc`."""
    names = [relation + suffix for suffix in (*SUFFIXES, *((".orc",) if for_spark else ()))]
    paths = [resolve_under(root, name) for name in names]
    found = [path for path in paths if _has_facts(path) or (for_spark and path.is_dir())]
    if not found:
        raise _missing(root, relation, names)
    if len(found) > 1 and found[0].suffix != ".facts":
        listed = ", ".join(path.name for path in found)
        raise error("E0511", location=str(found[0].parent), relation=relation, path=listed, name=found[0].name)
    return found[0]


def require_file(root: Path | str, relation: str, relative: str, *, is_confined: bool = True) -> Path:
    """The fact file, or folder of Parquet files, that a program names; it must exist. See `resolve_under`."""
    path = resolve_under(root, relative, is_confined=is_confined)
    if not _has_facts(path):
        raise _missing(root, relation, [relative])
    return path


def _has_facts(path: Path) -> bool:
    return path.is_file() or (path.suffix == ".parquet" and path.is_dir())


def natural_order(path: Path) -> tuple[tuple[int, int, str], ...]:
    """A sort key under which `update-10` follows `update-9`."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", path.name)
    )


def _missing(root: Path | str, relation: str, tried: list[str]) -> ElastalogError:
    folder = Path(root)
    is_there = folder.is_dir()
    paths = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".dl"] if is_there else []
    # Not what the quarantine has put beside the facts.
    files = {path.name.partition(".")[0]: path.name for path in paths if ".bad" not in path.suffixes}
    wanted = tried[0].partition(".")[0]
    near = wanted if wanted in files else nearest(wanted, files)
    folders = ", ".join(f"`{name}`" for name in tried if (folder / name).is_dir())
    found = files.get(near or "")
    named = "" if found == f"{relation}.json" else f', filename="{found}"'
    return error(
        "E0510.missing", location=folder / tried[0], relation=relation, folder=folder, tried=", ".join(tried),
        near=found, folders=folders or None, no_folder=None if is_there else folder,
        json=f"IO=json{named}" if found is not None and found.endswith(".json") else None,
        named=f'filename="{found}", rfc4180=true' if found is not None and found.endswith(".csv") else None,
    )  # fmt: skip


def _outside(root: Path | str, relative: str, why: str) -> ElastalogError:
    return error("E0512", location=root, relative=shown(relative), root=root, why=why)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write. It takes the place of `path` if the block ends well, and leaves no trace otherwise. Folders on
    the way are made."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        out = open(temporary, "xb")  # noqa: SIM115 - closed below, before the rename
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        with out:
            yield out
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_writable(path, error) from None
        raise


def _not_writable(path: Path, error: OSError) -> ElastalogError:
    return ElastalogError.of("E0517", location=path, path=path, error=error.strerror or error)
