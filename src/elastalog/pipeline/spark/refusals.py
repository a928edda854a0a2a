"""What Spark says about a place that it cannot read or write, as a diagnostic."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.folders.addresses import without_secrets

_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/|file:")


def absolute(place: str | os.PathLike[str]) -> str:
    """A path as Java understands it, whose working folder may be another; addresses as they are."""
    text = os.fspath(place)
    return text if _ADDRESS.match(text) else os.path.abspath(text)


@contextmanager
def reading(kind: str, place: str) -> Iterator[None]:
    """Turns what Spark says about an unreadable source into a diagnostic."""
    with _told("E1105", f"cannot read {kind} from", place, "check the place, its format and your rights to it"):
        yield


@contextmanager
def evaluating(relation: str) -> Iterator[None]:
    """Turns what Spark says about the DataFrame given for a relation, whose rows it cannot give, into a diagnostic."""
    advice = "evaluate the DataFrame alone, with `collect`: the error is in how it is made"
    with _told("E1105", "cannot evaluate the DataFrame of", relation, advice):
        yield


@contextmanager
def writing(kind: str, place: str) -> Iterator[None]:
    """Turns what Spark says about a place that it does not write to into a diagnostic."""
    advice = (
        "check the place and your rights to it; `mode` says what happens to what is there: overwrite, append, ignore"
    )
    with _told("E1111", f"cannot write {kind} to", place, advice):
        yield


@contextmanager
def _told(code: str, what: str, place: str, advice: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except PythonException as error:  # the last line of a traceback says what was wrong
        reason, text = type(error).__name__, str(error).rstrip().rpartition("\n")[2]
    except PySparkException as error:
        reason, text = error.getCondition() or type(error).__name__, str(error)
    except Py4JJavaError as error:  # of a database, say
        reason, text = error.java_exception.getClass().getSimpleName(), str(error.java_exception.getMessage())
    else:
        return
    raise ElastalogError(
        [
            Diagnostic(
                code=code,
                message=f"Spark {what} `{without_secrets(place)}`: {reason}",
                notes=tuple(without_secrets(line)[:300] for line in text.splitlines()[:1]),
                help=advice,
                location=without_secrets(place),
            )
        ]
    )
