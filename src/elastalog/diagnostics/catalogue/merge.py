"""The entries of all stages under their codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from elastalog.diagnostics.catalogue.debugging import DEBUGGING
from elastalog.diagnostics.catalogue.editing import EDITING
from elastalog.diagnostics.catalogue.entry import Entry
from elastalog.diagnostics.catalogue.facts import FACTS
from elastalog.diagnostics.catalogue.names import NAMES
from elastalog.diagnostics.catalogue.provenance import PROVENANCE
from elastalog.diagnostics.catalogue.run import RUN
from elastalog.diagnostics.catalogue.shell import SHELL
from elastalog.diagnostics.catalogue.spark import SPARK
from elastalog.diagnostics.catalogue.storage import STORAGE
from elastalog.diagnostics.catalogue.strategies import STRATEGIES
from elastalog.diagnostics.catalogue.syntax import SYNTAX
from elastalog.diagnostics.catalogue.types import TYPES
from elastalog.diagnostics.catalogue.values import VALUES
from elastalog.diagnostics.catalogue.web import WEB
from elastalog.diagnostics.catalogue.workbench import WORKBENCH
from elastalog.diagnostics.diagnostic import InternalError


def merge(*stages: Iterable[Entry]) -> Mapping[str, Entry]:
    """All entries by code, in order of code; a code must not be given twice."""
    entries: dict[str, Entry] = {}
    for entry in sorted((entry for stage in stages for entry in stage), key=lambda entry: entry.code):
        if entry.code in entries:
            raise InternalError("catalogue", f"the code {entry.code} is given twice")
        entries[entry.code] = entry
    return MappingProxyType(entries)


CATALOGUE: Mapping[str, Entry] = merge(
    SYNTAX,
    NAMES,
    TYPES,
    FACTS,
    RUN,
    PROVENANCE,
    SHELL,
    STRATEGIES,
    STORAGE,
    SPARK,
    DEBUGGING,
    VALUES,
    EDITING,
    WEB,
    WORKBENCH,
)
"""Every entry by its code."""
