"""How a fact file is written: from the parameters of a directive and the name of the file."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.late import dataclass
from elastalog.relations.faults import shown


class Kind(Enum):
    TEXT = "text"
    PARQUET = "parquet"
    JSON_LINES = "json lines"


@dataclass(frozen=True, slots=True)
class Format:
    """`delimiter`, `has_header` and `is_rfc4180` matter for text only; `is_gzip` not for Parquet."""

    kind: Kind = Kind.TEXT
    delimiter: str = "\t"
    has_header: bool = False
    is_rfc4180: bool = False
    is_gzip: bool = False
    columns: tuple[int, ...] = ()
    """Which columns of a text file are those of the relation; none: all, in order."""

    @staticmethod
    def of(parameters: Mapping[str, str], name: str) -> Format:
        """The format of file `name` under the parameters of an `.input` or `.output` directive.

        The name decides between text, Parquet (`.parquet`) and JSON lines (`.jsonl`, `.ndjson`), and `.gz` means gzip;
        the rest is Soufflé's: tab-separated without header unless `delimiter`, `headers`, `rfc4180` or `compress` say
        otherwise, with `,` as the default delimiter of `rfc4180`."""
        is_rfc4180 = _truth(parameters, "rfc4180")
        delimiter = parameters.get("delimiter", "," if is_rfc4180 else "\t").replace("\\t", "\t")
        if not delimiter or any(c in delimiter for c in '"\r\n'):
            raise ElastalogError(
                [_bad_parameter("delimiter", delimiter, "a delimiter is some text without quote or line end")]
            )
        suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
        is_gzip = bool(suffixes) and suffixes[-1] == ".gz"
        last = suffixes[-2 if is_gzip else -1] if len(suffixes) > is_gzip else ""
        return Format(
            kind=_KINDS.get(last, Kind.TEXT),
            delimiter=delimiter,
            has_header=_truth(parameters, "headers"),
            is_rfc4180=is_rfc4180,
            is_gzip=is_gzip or _truth(parameters, "compress"),
            columns=tuple(int(column) for column in parameters.get("columns", "").split(":") if column.isdecimal()),
        )


_KINDS = {".parquet": Kind.PARQUET, ".jsonl": Kind.JSON_LINES, ".ndjson": Kind.JSON_LINES}


def medium(parameters: Mapping[str, str], allowed: tuple[str, ...]) -> str:
    """The value of `IO` (`file` unless given), one of `allowed`."""
    given = parameters.get("IO", "file")
    if given not in allowed:
        choices = ", ".join(f"`{name}`" for name in allowed)
        raise ElastalogError([_bad_parameter("IO", given, f"choose one of {choices}")])
    return given


def _truth(parameters: Mapping[str, str], name: str) -> bool:
    value = parameters.get(name, "false")
    if value.lower() not in ("true", "false"):
        raise ElastalogError([_bad_parameter(name, value, "write `true` or `false`")])
    return value.lower() == "true"


def _bad_parameter(name: str, value: str, advice: str) -> Diagnostic:
    return Diagnostic(code="E0514", message=f"parameter `{name}` cannot be {shown(value)}", help=advice)
