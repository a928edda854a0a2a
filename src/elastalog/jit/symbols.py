"""The names that object code may leave open: all that a process without numba has to offer to operators."""

from __future__ import annotations

NDARRAY = "elastalog_ndarray"
"""Name by which the entries know numpy's type of arrays."""

PYTHON_SYMBOLS = (
    "PyBool_FromLong", "PyErr_Occurred", "PyErr_SetString", "PyEval_RestoreThread", "PyEval_SaveThread",
    "PyExc_RuntimeError", "PyExc_TypeError", "PyFloat_AsDouble", "PyFloat_FromDouble", "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLong", "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyObject_IsTrue",
    "PyType_IsSubtype", "Py_IncRef", "_Py_NoneStruct",
)  # fmt: skip
"""What the entries use of the interpreter."""

LIBRARY_SYMBOLS = ("memcpy", "memmove", "memset", "pow", "fmod")
"""What operators may use of the C library."""

PROCESS_SYMBOLS = frozenset((NDARRAY, *PYTHON_SYMBOLS, *LIBRARY_SYMBOLS))
"""Object code that wants anything else is refused when it is made."""
