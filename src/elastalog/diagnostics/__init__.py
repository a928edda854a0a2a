"""Errors as data: where, what, and what to do; rendered last."""

from elastalog.diagnostics.diagnostic import Diagnostic as Diagnostic
from elastalog.diagnostics.diagnostic import ElastalogError as ElastalogError
from elastalog.diagnostics.diagnostic import InternalError as InternalError
from elastalog.diagnostics.diagnostic import Label as Label
from elastalog.diagnostics.diagnostic import LimitReached as LimitReached
from elastalog.diagnostics.source import Source as Source
from elastalog.diagnostics.source import Span as Span
