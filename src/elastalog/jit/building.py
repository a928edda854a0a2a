"""Compiling all operators that lack object code, on all cores, in processes of their own: numba never gets into the
process that runs them.

`python -m elastalog.jit.building` does it, for this processor or for the family that is named, and says on its output
how far it is: a line "k n" for each operator.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from elastalog.jit import objects
from elastalog.jit.fingerprint import fingerprint, reach
from elastalog.jit.operators import Operator, operator_of

if TYPE_CHECKING:
    from elastalog.jit.objects import ObjectCode, Processor

PACKAGES = ("elastalog.backends.kernel", "elastalog.backends.spark", "elastalog.relations")
"""Where operators lie, in sub-packages too."""

Report = Callable[[int, int], None]
"""A function that is told how many operators have been compiled, and how many there are to compile."""

_reports: list[Report] = []
_is_tried = False


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """Reports what is compiled during the block."""
    _reports.append(report)
    try:
        yield
    finally:
        _reports.remove(report)


def build_once(wanted: Operator) -> bool:
    """Compiles everything that lacks object code, if one of our operators does; once a process, since what was not
    there after the first time will not be there after the second. Returns whether it has tried."""
    global _is_tried
    if _is_tried or not wanted.name.startswith(PACKAGES) or not sys.executable:
        return False
    _is_tried = True
    build()
    return True


def build(*family: str) -> None:
    """Compiles everything that lacks object code, in processes of their own, by default for this processor. What fails
    stays absent. Raises MissingPackage where nothing can be compiled."""
    import subprocess

    objects.require_compiler()

    # The same package, wherever this process found it; but not what happens to lie in the current folder.
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-P", "-m", "elastalog.jit.building", *family]
    environment = {**os.environ, "PYTHONPATH": path}
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=environment, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True
    ) as building:
        assert building.stdout is not None
        for line in building.stdout:
            done, _, number = line.partition(" ")
            for report in _reports:
                report(int(done), int(number))


def all_operators() -> list[Operator]:
    """Every operator of the package, but for those of modules that need something which is not installed."""
    found: dict[str, Operator] = {}
    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            with suppress(ImportError):
                values = map(operator_of, vars(import_module(module.name)).values())
                found.update({value.name: value for value in values if value is not None})
    return list(found.values())


def build_here(report: Report, processor: Processor | None = None) -> None:
    """Compiles everything that lacks object code, in children of this process, into the user's folder; by default for
    this processor. Other processes that want to do so wait, and find it done."""
    processor = processor or objects.processor()
    with _alone(objects.make_user_folder(processor.family)):
        missing = [
            operator
            for operator in all_operators()
            if objects.find(operator.name, fingerprint(operator), processor.family) is None
        ]
        if not missing:
            return
        missing.sort(key=reach, reverse=True)  # the longest first, so that no core waits for one at the end
        report(0, len(missing))
        for done, _ in enumerate(_compile_all(missing, processor), 1):
            report(done, len(missing))


def pack(folder: Path, family: str) -> None:
    """Puts the object code of all operators for a family of processors into a folder that a wheel carries. It has been
    compiled before."""
    home = folder / family
    home.mkdir(parents=True, exist_ok=True)
    for operator in all_operators():
        print_ = fingerprint(operator)
        code = objects.find(operator.name, print_, family)
        if code is None or code.unfit:
            raise RuntimeError(f"{operator.name} has no object code for {family}: {code and code.unfit}")
        objects.keep(operator.name, print_, code, home)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    import fcntl

    with open(folder / ".building", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile_all(operators: list[Operator], processor: Processor) -> Iterator[None]:
    import gc
    import multiprocessing

    objects.require_compiler()
    os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"  # never shown, and a tenth of inference
    from elastalog.jit import lowering  # in the parent, so that children need not

    lowering.prepare(processor)
    gc.disable()  # what numba has made of a piece is kept for others, and looking for garbage in it took a tenth
    cores = min(len(os.sched_getaffinity(0)), len(operators)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if sys.platform != "linux" or cores == 1:
        for operator in operators:
            _compile(operator, processor.family)
            yield
        return
    by_name = {operator.name: operator for operator in operators}
    _children_compile.update(by_name)
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        yield from pool.imap_unordered(_compile_in_child, [(name, processor.family) for name in by_name])


_children_compile: dict[str, Operator] = {}


def _compile_in_child(task: tuple[str, str]) -> None:
    name, family = task
    _compile(_children_compile[name], family)


def _compile(operator: Operator, family: str) -> None:
    from elastalog.jit.lowering import Unfit, object_code

    made: ObjectCode
    try:
        made = object_code(operator)
    except Unfit as reason:
        made = objects.ObjectCode(b"", "", (), str(reason))
    objects.keep(operator.name, fingerprint(operator), made, objects.user_folder(family))


def main(arguments: list[str]) -> None:
    build_here(partial(print, flush=True), *(objects.FAMILIES[family] for family in arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
