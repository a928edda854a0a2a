"""What operators take and return, described without numba: a process that runs compiled operators never imports it.

`lowering` translates a description into numba's type when an operator is compiled, `entry` into the checks that a call
makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number or a truth value, named as numpy and numba both name it; `void` is the result of an operator without
    one."""

    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """An element of an array whose fields have names."""

    dtype: np.dtype[np.void]

    @property
    def name(self) -> str:
        """Everything compiled code knows of it: names, types and offsets of its fields, and its size."""
        fields = self.dtype.fields
        assert fields is not None
        described = ",".join(f"{name}:{found[0].str}@{found[1]}" for name, found in fields.items())
        return f"record[{described};{self.dtype.itemsize}]"


@dataclass(frozen=True, slots=True)
class Array:
    """A C-contiguous array in the machine's byte order. Only where it is `readonly` may it be one that must not be
    written to."""

    element: Scalar | Record
    dimensions: int
    readonly: bool = False

    @property
    def name(self) -> str:
        return f"{'given ' if self.readonly else ''}{self.element.name} array of dimension {self.dimensions}"


Description = Scalar | Array

void = Scalar("void")
boolean = Scalar("bool")
uint8 = Scalar("uint8")
int32 = Scalar("int32")
uint32 = Scalar("uint32")
int64 = Scalar("int64")
uint64 = Scalar("uint64")


def record(dtype: npt.DTypeLike, dimensions: int = 1) -> Array:
    """An array of records: `record(RELATION)` for a table whose rows are of the dtype RELATION."""
    return Array(Record(np.dtype(dtype)), dimensions)
