"""What can be wrong with a row of facts, wherever it comes from: Python, Arrow or a file."""

from __future__ import annotations

import re

from elastalog.late import dataclass

ARITY = "E0501"
TYPE = "E0502"
RANGE = "E0503"
NULL = "E0504"
ENCODING = "E0505"
QUOTING = "E0506"
JSON = "E0507"
NAMES = "E0518"
CHANGE = "E0520"
UNKNOWN = "E0521"
OPERATION = "E0522"
RDF = "E0529"

MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row cannot be a fact. `code` is one of the codes above; `reason` a lower-case clause; `advice` what to do,
    where it is not what `HELP` says of the code."""

    code: str
    reason: str
    advice: str = ""

    @property
    def help(self) -> str:
        """The help line."""
        return self.advice or HELP[self.code]


def wrong_number(found: int, what: str, wanted: int) -> Fault:
    """The fault of a row with more or fewer values than the relation has columns. `what`: one of those found."""
    return Fault(ARITY, f"{found} {what}{'' if found == 1 else 's'} for {wanted} column{'' if wanted == 1 else 's'}")


def for_whole(column: str) -> str:
    """What to do about a float where a whole number is wanted."""
    return f"declare it as `{column}: float`, or give whole numbers: in Python `round(x)`"


def for_separators(text: str) -> str:
    """What to do about a number with separators, a decimal comma or quotes; nothing if the text is none."""
    if text[:1] == text[-1:] == '"' and text[1:-1].lstrip("+-").isdecimal():
        return _QUOTED_ADVICE
    return _SEPARATED_ADVICE if _SEPARATED.fullmatch(text) else ""


_SEPARATED = re.compile(
    r"[ \t]*[+-]?(?:\d{1,3}(?:[.,_'’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?|\d+,\d+|\d+(?:_\d+)+(?:\.\d+)?)[ \t]*", re.ASCII
)
_QUOTED_ADVICE = (
    "the file has quotes, as CSV has: add `rfc4180=true`, and its `delimiter` unless that is a comma, to `.input`"
)
_SEPARATED_ADVICE = "write digits without separators, as in `1200`; the decimal sign of a float is a point, as in `3.5`"


def shown(text: str) -> str:
    """Text of a user, quoted, safe for a terminal and of bounded length: what is not printable is escaped."""
    cut = text[:MOST_SHOWN]
    escaped = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in cut
    )
    return f"`{escaped}`" if len(text) <= MOST_SHOWN else f"`{escaped}…` ({len(text):,} characters)"


HELP = {
    ARITY: "give every row as many values as the relation has columns",
    TYPE: "convert the values first, or declare the attribute with another type",
    RANGE: "use a value the type can hold, or declare the attribute as `symbol`",
    NULL: "leave out rows with a missing value, or give a value in its place: a relation cannot hold null",
    ENCODING: "convert the text to UTF-8",
    QUOTING: 'write a quote inside a quoted field as `""`, and close every quoted field',
    NAMES: "name every column as it is declared, or none",
    CHANGE: "write one change per line, as `+edge(1, 2).`, `-edge(3, 4).` or `+rule: path(x, y) :- edge(x, y).`;"
    " strings stand in double quotes",
    UNKNOWN: "name a relation that the program declares",
    OPERATION: "write `+` for an insertion, `-` for a deletion",
    RDF: "write it as the format has it; `--bad-rows` says what happens to statements that are wrong",
    JSON: "write each fact as a JSON object (by attribute name) or as an array, even of one value",
}
"""What is to be done about faults of a code."""
