"""Commands with limits, and what they wrote."""

from __future__ import annotations

import math
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elastalog.analysis.program import Base, Relation

_MEMORY = 12 << 30
_OUTPUT = 1 << 28
_BUSY = 8


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `code` None: its time was up. `seconds` of the processor."""

    code: int | None
    seconds: float
    megabytes: int
    said: str


_LAUNCHER = """
import os, resource, sys
seconds, memory, output = map(int, sys.argv[1:4])
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
child = os.fork()
if not child:
    os.execvp(sys.argv[4], sys.argv[4:])
_, status, usage = os.wait4(child, 0)
with open("usage", "w") as out:
    print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, file=out)
"""
"""Between this process and a command, so that the memory of the one is not taken for that of the other: a small one,
whose ten megabytes are the least that is measured."""


def execute(command: Sequence[str], folder: Path, limit: float, environment: Mapping[str, str] | None = None) -> Ended:
    """Runs a command in a folder, standard error to `err` there; it and all that it started are ended after so many
    seconds of the processor, or a multiple of them on a busy machine."""
    limits = [str(number) for number in (math.ceil(limit), _MEMORY, _OUTPUT)]
    (folder / "usage").write_text("None 0 0")
    with open(folder / "err", "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *limits, *command], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=err, cwd=folder, process_group=0,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        try:
            process.wait(_BUSY * limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (folder / "err").read_bytes()[-4000:].decode("utf-8", "replace")
    code, seconds, megabytes = (folder / "usage").read_text().split()
    is_late = code in ("None", str(-signal.SIGXCPU), str(-signal.SIGKILL))
    return Ended(None if is_late else int(code), round(float(seconds), 2), int(megabytes), said)


def apart(work: Callable[[Callable[[str], None]], None], limit: float) -> tuple[int | None, list[str]]:
    """Does something in a copy of this process, which ends after so many seconds: its exit code, None if it
    came to that, and what it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
            with open(write, "w") as pipe:
                work(lambda line: print(line, file=pipe, flush=True))
            os._exit(0)
        except SystemExit as over:
            os._exit(int(over.code or 0))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    told, end = b"", time.monotonic() + _BUSY * limit
    with open(read, "rb", buffering=0) as heard:
        while (left := end - time.monotonic()) > 0 and select.select([heard], [], [], left)[0]:
            part = heard.read(1 << 16)
            if not part:
                break
            told += part
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code, told.decode().splitlines()


def differing(first: Path, second: Path, relations: Mapping[str, Relation], suffix: str) -> dict[str, tuple[int, int]]:
    """The relations whose files are not the same facts, with how many only the first and only the second folder has."""
    found = {}
    for name, relation in relations.items():
        one, other = (_facts(folder / f"{name}{suffix}", relation) for folder in (first, second))
        left, right = one - other, other - one
        if (left or right) and not _are_near(left, right, relation):
            found[name] = (len(left), len(right))
    return found


def count(folder: Path, relations: Mapping[str, Relation], suffix: str) -> tuple[int, int]:
    """How many of the relations have facts, and how many facts those are."""
    files = [folder / f"{name}{suffix}" for name in relations]
    sizes = [file.read_bytes().count(b"\n") for file in files if file.exists()]
    return sum(size > 0 for size in sizes), sum(sizes)


def _facts(path: Path, relation: Relation) -> set[bytes]:
    """The lines of a file: a line end inside of a symbol makes two, on both sides. There is no float -0 here."""
    data = path.read_bytes() if path.exists() else b""
    if any(attribute.base is Base.FLOAT for attribute in relation.attributes):
        data = re.sub(rb"(?<![^\t\n])-0(?![^\t\n])", b"0", data)
    return set(data.split(b"\n")) - {b""} if relation.attributes else {data[:1]} - {b""}


def _are_near(left: set[bytes], right: set[bytes], relation: Relation) -> bool:
    """Whether facts differ only as floats of 32 and of 64 bits, or their spelling, do."""
    bases = [attribute.base for attribute in relation.attributes]
    if Base.FLOAT not in bases or len(left) != len(right):
        return False
    unmatched = [_parts(line.decode("utf-8", "replace"), bases) for line in sorted(right)]
    for fact in (_parts(line.decode("utf-8", "replace"), bases) for line in sorted(left)):
        found = next((each for each in unmatched if _is_near(fact, each)), None)
        if found is None:
            return False
        unmatched.remove(found)
    return True


def _parts(line: str, bases: Sequence[Base]) -> tuple[object, ...]:
    parts = line.split("\t")
    if len(parts) != len(bases):
        return (line,)
    return tuple(float(part) if base is Base.FLOAT else part for part, base in zip(parts, bases, strict=True))


def _is_near(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) or (a != a and b != b)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(one, other, strict=True)
    )
