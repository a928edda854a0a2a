"""Object code is put into memory by us where we know how, and by LLVM where we do not; it does the same."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from struct import unpack_from
from typing import Any

import numpy as np
import pytest

from elastalog.jit import building, loading, objects
from elastalog.jit.fingerprint import fingerprint
from elastalog.jit.loading import link
from elastalog.jit.operators import operator_of
from tests.jit import declared

AARCH64, X86_64 = 183, 62


@pytest.fixture(scope="module")
def total() -> objects.ObjectCode:
    lowering = pytest.importorskip("elastalog.jit.lowering")
    code: objects.ObjectCode = lowering.object_code(operator_of(declared.total))
    return code


def addresses(code: objects.ObjectCode) -> dict[str, int]:
    found = loading._addresses(code.wanted)
    assert found is not None
    return found


def test_both_linkers_make_code_that_does_the_same(total: objects.ObjectCode, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    operator: Any = operator_of(declared.total)
    own = loading._load(operator, total)
    monkeypatch.setattr(loading, "link", lambda *given: None)
    llvm = loading._load(operator, total)
    assert own is not None
    assert llvm is not None
    assert [own(rows, 100, False), own(rows, -15, True)] == [llvm(rows, 100, False), llvm(rows, -15, True)] == [115, 3]
    for called in (own, llvm):
        with pytest.raises(TypeError, match="argument 1 is no int32 array of dimension 2"):
            called(rows[0], 1, False)


@pytest.mark.skipif(sys.platform != "linux", reason="object files have another format elsewhere")
def test_every_operator_can_be_linked_by_us() -> None:
    for operator in building.all_operators():
        code = objects.find(operator.name, fingerprint(operator))
        if code is None:  # it has been edited since operators were compiled
            continue
        assert link(code.code, code.entry, addresses(code)) is not None, operator.name


def test_what_is_no_whole_object_file_is_left_to_llvm(total: objects.ObjectCode) -> None:
    known = addresses(total)
    assert link(b"", total.entry, known) is None
    assert link(b"\x7fELF\x01\x01" + total.code[6:], total.entry, known) is None
    for size in range(0, len(total.code), 97):
        assert link(total.code[:size], total.entry, known) is None
    assert link(total.code, "another", known) is None


def test_unknown_machines_and_relocations_are_left_to_llvm(total: objects.ObjectCode) -> None:
    known = addresses(total)
    other = bytearray(total.code)
    other[18:20] = (243).to_bytes(2, "little")  # RISC-V
    assert link(bytes(other), total.entry, known) is None
    other[18:20] = (X86_64 if total.code[18] == AARCH64 else AARCH64).to_bytes(2, "little")
    assert link(bytes(other), total.entry, known) is None


def test_a_name_that_is_not_there_is_not_linked(total: objects.ObjectCode) -> None:
    known = addresses(total)
    del known["PyErr_SetString"]
    assert link(total.code, total.entry, known) is None
    assert loading._addresses(("PyErr_SetString", "no_such_function")) is None


@pytest.mark.slow
@pytest.mark.parametrize(("family", "machine"), [("aarch64", AARCH64), ("x86-64-v3", X86_64)])
def test_every_family_can_be_compiled_for_on_any_machine(family: str, machine: int) -> None:
    pytest.importorskip("numba")
    script = (
        "import json\nfrom elastalog.jit import lowering, objects\nfrom tests.jit import declared\n"
        "from elastalog.jit.operators import operator_of\n"
        f"lowering.prepare(objects.FAMILIES[{family!r}])\n"
        "made = lowering.object_code(operator_of(declared.total))\n"
        "print(json.dumps([made.code.hex(), made.entry, made.wanted]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    code, entry, wanted = json.loads(done.stdout)
    made = objects.ObjectCode(bytes.fromhex(code), entry, tuple(wanted))
    assert made.code[:4] == b"\x7fELF"
    assert made.code[18] == machine
    assert "PyErr_SetString" in made.wanted
    start = link(made.code, made.entry, addresses(made))
    assert start is not None
    if machine == X86_64:
        _check_addresses(made, start)


def _check_addresses(made: objects.ObjectCode, entry: int) -> None:
    """Code for x86-64 holds whole addresses, and nothing else is to be filled in: each must be that of its name."""
    code, known = made.code, addresses(made)
    (headers,) = unpack_from("<Q", code, 40)
    size, number = unpack_from("<HH", code, 58)
    sections = [unpack_from("<IIQQQQIIQQ", code, headers + i * size) for i in range(number)]
    table = next(section for section in sections if section[1] == 2)
    texts = sections[table[6]][4]

    def symbol(place: int) -> tuple[str, int, int]:
        name, _, _, home, value, _ = unpack_from("<IBBHQQ", code, table[4] + 24 * place)
        return code[texts + name : code.index(b"\0", texts + name)].decode(), home, value

    names = [symbol(i) for i in range(table[5] // 24)]
    home, offset = next((home, value) for name, home, value in names if name == made.entry)
    start = entry - offset  # of the section of all code
    checked = 0
    for relocations in sections:
        if relocations[1] != 4 or relocations[7] != home:
            continue
        for at in range(relocations[4], relocations[4] + relocations[5], 24):
            place, info, added = unpack_from("<QQq", code, at)
            name, its_home, value = names[info >> 32]
            found = int.from_bytes(ctypes.string_at(start + place, 8), "little")
            if its_home == 0:
                assert found == known[name] + added
            elif its_home == home:
                assert found == start + value + added
            else:  # constants: what lies there is what the file has
                section = sections[its_home]
                if section[1] == 1 and section[5] > value + added:
                    length = section[5] - value - added
                    expected = code[section[4] + value + added : section[4] + section[5]]
                    assert ctypes.string_at(found, length) == expected
            checked += 1
    assert checked > 10


OUTLIVED = """
import gc, sys
import numpy as np
from elastalog.backends.kernel.store.set_table import compress

call = lambda: compress(np.zeros((2, 1), np.int32), 2, np.array([True, False]))
assert call() == 1
for name in [name for name in sys.modules if name.startswith("elastalog.jit")]:
    vars(sys.modules.pop(name)).clear()
gc.collect()
print(call())
del compress
"""


def test_operators_outlive_the_modules_that_loaded_them() -> None:
    """As when the interpreter ends: processes had ended with a segmentation fault, their work done."""
    done = subprocess.run([sys.executable, "-c", OUTLIVED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
