"""The names that object code may leave open: all that a process without numba has to offer to operators."""

from __future__ import annotations

import numpy as np

OBJECTS = {
    "elastalog_ndarray": np.ndarray,
    "elastalog_None": None,
    "elastalog_RuntimeError": RuntimeError,
    "elastalog_TypeError": TypeError,
}
"""Objects that the entries use, under names of our own: numba has other ideas of what `PyExc_TypeError` is."""

PYTHON_SYMBOLS = (
    "PyBool_FromLong", "PyErr_Occurred", "PyErr_SetString", "PyEval_RestoreThread", "PyEval_SaveThread",
    "PyFloat_AsDouble", "PyFloat_FromDouble", "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLong", "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyObject_IsTrue",
    "PyType_IsSubtype", "Py_IncRef",
)  # fmt: skip
"""What the entries use of the interpreter."""

LIBRARY_SYMBOLS = ("memcpy", "memmove", "memset", "pow", "fmod")
"""What operators may use of the C library."""

FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of the system call by which threads wait for each other, by kind of processor."""

SYSTEM_SYMBOLS = ("syscall", "sched_yield")
"""How threads that wait reach the system."""

PROCESS_SYMBOLS = frozenset((*OBJECTS, *PYTHON_SYMBOLS, *LIBRARY_SYMBOLS, *SYSTEM_SYMBOLS))
"""Object code that wants anything else is refused when it is made."""
