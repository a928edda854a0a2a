"""What the project depends on, from the metadata of what is installed:

    python scripts/dependencies.py lock            write constraints.txt: the versions that are installed
    python scripts/dependencies.py check           hold it against the bounds that everybody declares; licences
    python scripts/dependencies.py sbom WHEEL      put a bill of materials (CycloneDX) beside a wheel and into it

Nothing here asks the network. `pip-audit -r constraints.txt` does, and looks for known vulnerabilities.
"""

from __future__ import annotations

import json
import sys
import tomllib
import uuid
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HEADING = """\
# The versions that the project is developed and tested with; `make setup` installs these. Written by
# `python scripts/dependencies.py lock`. Whoever uses the project is bound only by pyproject.toml.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A package that is installed, what it requires, and whether the project works without it."""

    name: str
    version: str
    licence: str
    requires: tuple[str, ...]
    is_optional: bool


def declared() -> tuple[list[Requirement], list[Requirement]]:
    """What pyproject.toml requires, always and for extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for found in project["optional-dependencies"].values() for text in found]
    return list(map(Requirement, project["dependencies"])), list(map(Requirement, extras))


@cache
def parts() -> dict[str, Part]:
    """Everything that the project requires and that is installed, by name."""
    always, extras = declared()
    found: dict[str, Part] = {}
    for wanted, is_optional in ((always, False), (extras, True)):
        for requirement in wanted:
            for name in _closure(requirement, set(found)):
                found[name] = _part(name, is_optional)
    return dict(sorted(found.items()))


def _closure(requirement: Requirement, known: set[str]) -> Iterator[str]:
    """The names of what a requirement needs here, itself first, unless they are known."""
    waiting = [requirement]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name = str(canonicalize_name(requirement.name))
        key = name, frozenset(requirement.extras)
        if key in seen or not _applies(requirement, {""}) or _installed(name) is None:
            continue
        seen.add(key)
        if name not in known:
            known.add(name)
            yield name
        waiting += [found for found in requirements_of(name) if _applies(found, requirement.extras or {""})]


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})


@cache
def _installed(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def requirements_of(name: str) -> tuple[Requirement, ...]:
    """What an installed package requires, with its extras."""
    return tuple(map(Requirement, metadata.distribution(name).requires or ()))


def _part(name: str, is_optional: bool) -> Part:
    found = metadata.distribution(name)
    needed = {str(canonicalize_name(r.name)) for r in requirements_of(name) if _applies(r, {""})}
    return Part(name, found.version, _licence(found), tuple(sorted(filter(_installed, needed))), is_optional)


def _licence(found: metadata.Distribution) -> str:
    """As the package names it: an expression, the end of a classifier, or the first line of a text; empty if not."""
    about: Mapping[str, str] = found.metadata  # type: ignore[assignment]
    classifiers = [text for text in found.metadata.get_all("Classifier") or () if text.startswith("License :: ")]
    named = [text.split(" :: ")[-1] for text in classifiers if text.count(" :: ") > 1]
    written = (about.get("License-Expression") or "", *named, (about.get("License") or "").strip().split("\n")[0])
    return next(filter(None, written), "")[:100]


# --- the three commands --------------------------------------------------------------------------------------------


def lock() -> str:
    """The content of constraints.txt for this environment."""
    return HEADING + "".join(f"{part.name}=={part.version}\n" for part in parts().values())


def locked(text: str) -> dict[str, str]:
    """The versions in constraints.txt, by name."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def faults(versions: Mapping[str, str]) -> list[str]:
    """What is wrong with locked versions: outside of bounds that someone declares, missing, or of unknown licence."""
    always, extras = declared()
    known = parts()
    asking = [("pyproject.toml", requirement) for requirement in (*always, *extras)]
    # What others that are installed instead declare says nothing of those locked.
    same = {name for name, part in known.items() if versions.get(name) == part.version}
    asking += [(name, requirement) for name in same for requirement in requirements_of(name)]
    found = []
    for who, requirement in asking:
        version = versions.get(str(canonicalize_name(requirement.name)))
        if not _applies(requirement, {""}) or (version is None and who != "pyproject.toml"):
            continue
        if version is None and _installed(requirement.name) is not None:
            found.append(f"{who} requires {requirement}, which is not locked")
        elif version is not None and not requirement.specifier.contains(version, prereleases=True):
            found.append(f"{who} requires {requirement}, and {version} is locked")
    found += [f"{part.name} {part.version} names no licence" for part in known.values() if not part.licence]
    is_all = all(versions.get(name) in (None, part.version) for name, part in known.items())
    idle = [name for name in versions if is_all and name not in known and _installed(name) is not None]
    found += [f"{name} is locked, and nothing requires it" for name in idle]
    return found


def bill(version: str) -> dict[str, Any]:
    """A bill of materials in the form of CycloneDX 1.5. The same for the same versions."""
    known = parts()
    components = [
        {
            "type": "library",
            "bom-ref": _reference(part.name, part.version),
            "name": part.name,
            "version": part.version,
            "purl": _reference(part.name, part.version),
            "scope": "optional" if part.is_optional else "required",
            "licenses": [{"license": {"name": part.licence}}],
        }
        for part in known.values()
    ]
    direct = [str(canonicalize_name(r.name)) for found in declared() for r in found]
    edges = {"elastalog": direct, **{part.name: part.requires for part in known.values()}}
    versions = {"elastalog": version, **{part.name: part.version for part in known.values()}}
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": _reference("elastalog", version),
                "name": "elastalog",
                "version": version,
                "purl": _reference("elastalog", version),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [
            {
                "ref": _reference(name, versions[name]),
                "dependsOn": sorted({_reference(n, versions[n]) for n in needed if n in versions}),
            }
            for name, needed in edges.items()
        ],
    }


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def put_into(wheel: Path) -> Path:
    """Writes the bill beside a wheel and into it, where PEP 770 wants it. Returns its path."""
    name, version = wheel.name.split("-")[:2]
    data = json.dumps(bill(version), indent=1).encode() + b"\n"
    beside = wheel.with_name(f"{name}-{version}.cdx.json")
    beside.write_bytes(data)
    inside, record = (f"{name}-{version}.dist-info/{file}" for file in (f"sboms/{name}.cdx.json", "RECORD"))
    fresh = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            if item.filename not in (inside, record):
                new.writestr(item, old.read(item))
        new.writestr(inside, data)
        digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
        lines = [line for line in old.read(record).decode().splitlines() if not line.startswith(f"{inside},")]
        new.writestr(record, "\n".join([*lines, f"{inside},sha256={digest},{len(data)}"]) + "\n")
    fresh.replace(wheel)
    return beside


def main(arguments: list[str]) -> int:
    match arguments:
        case ["lock"]:
            CONSTRAINTS.write_text(lock(), encoding="utf-8")
            return 0
        case ["check"]:
            found = faults(locked(CONSTRAINTS.read_text(encoding="utf-8")))
            print("\n".join(found) or f"{CONSTRAINTS.name}: all bounds are kept, all licences are named")
            return 1 if found else 0
        case ["sbom", *wheels] if wheels:
            for wheel in wheels:
                print(put_into(Path(wheel)))
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
