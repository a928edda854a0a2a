"""Elastalog: Datalog that keeps its answers up to date and can say why they are so."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("Elastalog runs on Linux and macOS; on Windows, use it in WSL (`wsl --install`)")

TYPE_CHECKING = False  # as checkers know it; `typing` takes a third of the time until the command sees to Ctrl-C

if TYPE_CHECKING:
    from typing import Any

    from elastalog.analysis.values import Branch as Branch
    from elastalog.backends.watch import Progress as Progress
    from elastalog.client import Client as Client
    from elastalog.client import connect as connect
    from elastalog.database import Database as Database
    from elastalog.debugging.answers import Blame as Blame
    from elastalog.debugging.answers import Localisation as Localisation
    from elastalog.debugging.answers import Suggestion as Suggestion
    from elastalog.diagnostics.diagnostic import Diagnostic as Diagnostic
    from elastalog.diagnostics.diagnostic import ElastalogError as ElastalogError
    from elastalog.diagnostics.diagnostic import InternalError as InternalError
    from elastalog.evaluation.changes import Changes as Changes
    from elastalog.evaluation.changes import Update as Update
    from elastalog.evaluation.costs import Forecast as Forecast
    from elastalog.evaluation.differences import Difference as Difference
    from elastalog.evaluation.differences import Differences as Differences
    from elastalog.evaluation.differences import Verification as Verification
    from elastalog.evaluation.epochs import EpochRecord as EpochRecord
    from elastalog.pipeline.files.policy import BadRows as BadRows
    from elastalog.pipeline.files.policy import Report as Report
    from elastalog.prepared import Decision as Decision
    from elastalog.prepared import PreparedDecision as PreparedDecision
    from elastalog.prepared import PreparedQuery as PreparedQuery
    from elastalog.program import Program as Program
    from elastalog.provenance.absence import Absence as Absence
    from elastalog.provenance.fact import Fact as Fact
    from elastalog.provenance.proof import Proof as Proof
    from elastalog.relations.facts import Relation as Relation
    from elastalog.relations.functions import vectorised as vectorised
    from elastalog.relations.schema import Schema as Schema
    from elastalog.session import Session as Session
    from elastalog.session import open as open  # noqa: A004  # its public name
    from elastalog.session import query as query
    from elastalog.session.engine import Engine as Engine
    from elastalog.session.engine import instrument as instrument
    from elastalog.session.pending import PendingUpdate as PendingUpdate
    from elastalog.session.questions import Statistics as Statistics
    from elastalog.session.settings import Limits as Limits
    from elastalog.session.settings import Store as Store
    from elastalog.storage.entries import LogEntry as LogEntry

__version__ = "0.1.0"

PUBLIC = {
    "Absence": "elastalog.provenance.absence",
    "BadRows": "elastalog.pipeline.files.policy",
    "Blame": "elastalog.debugging.answers",
    "Branch": "elastalog.analysis.values",
    "Changes": "elastalog.evaluation.changes",
    "Client": "elastalog.client",
    "Database": "elastalog.database",
    "Decision": "elastalog.prepared",
    "Diagnostic": "elastalog.diagnostics.diagnostic",
    "Difference": "elastalog.evaluation.differences",
    "Differences": "elastalog.evaluation.differences",
    "ElastalogError": "elastalog.diagnostics.diagnostic",
    "Engine": "elastalog.session.engine",
    "EpochRecord": "elastalog.evaluation.epochs",
    "Fact": "elastalog.provenance.fact",
    "Forecast": "elastalog.evaluation.costs",
    "InternalError": "elastalog.diagnostics.diagnostic",
    "Limits": "elastalog.session.settings",
    "Localisation": "elastalog.debugging.answers",
    "LogEntry": "elastalog.storage.entries",
    "PendingUpdate": "elastalog.session.pending",
    "PreparedDecision": "elastalog.prepared",
    "PreparedQuery": "elastalog.prepared",
    "Program": "elastalog.program",
    "Progress": "elastalog.backends.watch",
    "Proof": "elastalog.provenance.proof",
    "Relation": "elastalog.relations.facts",
    "Report": "elastalog.pipeline.files.policy",
    "Schema": "elastalog.relations.schema",
    "Session": "elastalog.session",
    "Statistics": "elastalog.session.questions",
    "Store": "elastalog.session.settings",
    "Suggestion": "elastalog.debugging.answers",
    "Update": "elastalog.evaluation.changes",
    "Verification": "elastalog.evaluation.differences",
    "connect": "elastalog.client",
    "instrument": "elastalog.session.engine",
    "open": "elastalog.session",
    "query": "elastalog.session",
    "vectorised": "elastalog.relations.functions",
}
"""What is public, and where it is: imported when first used, so that `import elastalog` stays quick."""

__all__ = ["__version__", *PUBLIC]  # names all the same


def __getattr__(name: str) -> Any:
    home = PUBLIC.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """For `%load_ext elastalog`."""
    from importlib import import_module

    import_module("elastalog.notebook").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
