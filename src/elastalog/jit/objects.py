"""Where object code lies, and how it is told from anything else that might lie there.

A file holds one operator, and is named after it and its fingerprint. Its head has a digest of all the rest: what was
damaged, cut short or made by others is as good as absent. Files are looked for in the package (a wheel may carry them),
then in the user's cache folder, which must belong to the user alone, since what lies there is run.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from elastalog.diagnostics.arguments import MissingPackage
from elastalog.late import dataclass

PACKAGED = "built"
"""Folder of the package in which a wheel carries object code, by families of processors."""

MAGIC = b"elastalog object code 1\n"
_DIGEST = 32
_LENGTH = 4
_VERSIONS_KEPT = 8
"""Files of one operator that are kept: branches and versions of the package take turns."""


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Machine code of one operator, its entry for Python, and the names it wants the process to know. Without code: why
    there can be none (`unfit`), so that it is not compiled again."""

    code: bytes
    entry: str
    wanted: tuple[str, ...]
    unfit: str = ""


def encode(fingerprint: str, code: ObjectCode) -> bytes:
    """The content of a file."""
    head = json.dumps(
        {"fingerprint": fingerprint, "entry": code.entry, "wanted": code.wanted, "unfit": code.unfit}
    ).encode()
    rest = len(head).to_bytes(_LENGTH, "little") + head + code.code
    return MAGIC + blake2b(rest, digest_size=_DIGEST).digest() + rest


def decode(fingerprint: str, data: bytes) -> ObjectCode | None:
    """What a file holds; nothing if it is not whole, or of something else."""
    start = len(MAGIC) + _DIGEST
    rest = data[start:]
    if not data.startswith(MAGIC) or data[len(MAGIC) : start] != blake2b(rest, digest_size=_DIGEST).digest():
        return None
    end = _LENGTH + int.from_bytes(rest[:_LENGTH], "little")
    head = json.loads(rest[_LENGTH:end])
    if head["fingerprint"] != fingerprint:
        return None
    return ObjectCode(rest[end:], head["entry"], tuple(head["wanted"]), head["unfit"])


@dataclass(frozen=True, slots=True)
class Processor:
    """What object code is made for: a family of processors, and how LLVM names its kind, itself and its features."""

    family: str
    triple: str
    name: str
    features: str


FAMILIES = {
    "aarch64": Processor("aarch64", "aarch64-unknown-linux-gnu", "generic", ""),
    "x86-64-v3": Processor("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", ""),
}
"""Families that object code travels between. Each can be compiled for on any machine."""

_V3 = {"abm", "avx2", "bmi1", "bmi2", "cx16", "f16c", "fma", "movbe", "popcnt", "sse4_2", "ssse3", "xsave"}
"""What Linux calls the features of x86-64-v3 beyond those that every machine with AVX2 has."""


@cache
def processor() -> Processor:
    """The processor of this machine: one of the families on Linux, otherwise just itself. Raises MissingPackage if only
    LLVM can tell, and is not installed."""
    if sys.platform == "linux":
        machine = os.uname().machine
        if machine == "aarch64":
            return FAMILIES["aarch64"]
        if machine == "x86_64" and _linux_features() >= _V3:
            return FAMILIES["x86-64-v3"]
    require_compiler()
    from llvmlite import binding

    flat = binding.get_host_cpu_features().flatten()
    name = binding.get_host_cpu_name()
    family = f"{name}-{blake2b(flat.encode(), digest_size=4).hexdigest()}"
    return Processor(family, binding.get_process_triple(), name, flat)


def require_compiler() -> None:
    """Raises MissingPackage unless operators can be compiled here."""
    from importlib.util import find_spec

    if find_spec("numba") is None:
        raise MissingPackage.of("E0624")


def _linux_features() -> set[str]:
    with suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def file_name(operator: str, fingerprint: str) -> str:
    return f"{operator.removeprefix('elastalog.')}-{fingerprint}.o"


def _from_package(family: str, name: str) -> bytes | None:
    """A file that came with the package, if there is one; also from an archive."""
    path = os.path.join(os.path.dirname(__file__), PACKAGED, family, name)
    with suppress(OSError):
        data: bytes = __loader__.get_data(path)  # type: ignore[name-defined]
        return data
    return None


def user_folder(family: str = "") -> Path:
    """Where the user's object code for a family of processors lies, by default of this one; it may not be there."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root, "elastalog", "operators", family or processor().family)


def is_own(folder: Path) -> bool:
    """Whether a folder, and the one it lies in, belong to the user, and no other user may write there."""
    for each in (folder, folder.parent):
        try:
            found = os.lstat(each)
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            return False
    return True


def find(operator: str, fingerprint: str, family: str = "") -> ObjectCode | None:
    """The object code of an operator, from wherever there is a whole one; by default for this processor."""
    family = family or processor().family
    name = file_name(operator, fingerprint)
    for read in (_from_package, _from_user_folder):
        data = read(family, name)
        if data is not None and (code := decode(fingerprint, data)) is not None:
            return code
    return None


def _from_user_folder(family: str, name: str) -> bytes | None:
    folder = user_folder(family)
    if not is_own(folder):
        return None
    with suppress(OSError):
        return (folder / name).read_bytes()
    return None


def keep(operator: str, fingerprint: str, code: ObjectCode, folder: Path | None = None) -> None:
    """Writes the object code of an operator, whole or not at all, into the user's folder or another. Raises OSError."""
    from tempfile import NamedTemporaryFile  # which imports much else

    folder = folder or make_user_folder()
    with NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
        try:
            file.write(encode(fingerprint, code))
            file.close()
            os.replace(file.name, folder / file_name(operator, fingerprint))
        except BaseException:
            os.unlink(file.name)
            raise
    _remove_oldest(folder, operator)


def make_user_folder(family: str = "") -> Path:
    """The user's folder, made if need be. Raises OSError, also if others could write there."""
    folder = user_folder(family)
    for each in (*reversed(folder.parents[:2]), folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own(folder):
        raise PermissionError(f"{folder} can be written to by others")
    return folder


def _remove_oldest(folder: Path, operator: str) -> None:
    with suppress(OSError):  # another process does the same
        files = sorted(folder.glob(file_name(operator, "*")), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[_VERSIONS_KEPT:]:
            path.unlink()
