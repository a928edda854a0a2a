"""Kinds of parameters of calls, with their limits."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Name: TypeAlias = Annotated[str, Field(max_length=1000)]
FactText: TypeAlias = Annotated[str, Field(min_length=1, max_length=1 << 20, examples=["path(1, 3)"])]
Rows: TypeAlias = list[list[Any] | dict[str, Any]]
RowsBy: TypeAlias = Annotated[dict[str, Rows], Field(examples=[{"edge": [[1, 2], [2, 3]]}])]
ProgramText: TypeAlias = Annotated[str, Field(max_length=1 << 24)]
Order: TypeAlias = Annotated[str, Field(max_length=10_000, examples=["-from,to"])]
Offset: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Number: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 31)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Epoch: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]
"""How long an answer may take."""


class Body(BaseModel):
    """A body of JSON, which has no other fields."""

    model_config = ConfigDict(extra="forbid")
