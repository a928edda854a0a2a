"""A device that is none: a driver whose device is this processor, made of `emulated.cpp` and the functions of the
module that runs on real ones. Slow, but what it computes is what the module says; needs a C++ compiler."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from elastalog.backends.gpu import driver

HERE = Path(__file__).parent
KERNELS = Path(driver.__file__).with_name("kernels.cu")


def build(folder: Path) -> Path:
    """The library of the driver, in a folder."""
    library = folder / "libemulated.so"
    pieces = re.split(r"__global__ void (\w+)", KERNELS.read_text(encoding="utf-8"))[1:]
    waits = re.compile(r"__sync|_sync\(|block_sum|FIND_ROWS")
    functions = " ".join(
        f"FUNCTION({name}, {int(waits.search(body) is not None)})"
        for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    )
    # Fortified, as compilers of some distributions do unasked, it would take jumps between fibers for errors.
    command = ["g++", "-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-w", f'-DKERNELS="{KERNELS}"']
    command += [f"-DFUNCTIONS={functions}", str(HERE / "emulated.cpp"), "-o", str(library)]
    subprocess.run(command, check=True, timeout=300)
    return library
