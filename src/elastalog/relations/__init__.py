"""Relations as words: schema, symbols, wide numbers, and facts in and out."""

from elastalog.relations.schema import Column, Schema
from elastalog.relations.symbols import Symbols
from elastalog.relations.tables import to_table, to_words
from elastalog.relations.wide import WideTable
from elastalog.relations.words import Dictionary

__all__ = ["Column", "Dictionary", "Schema", "Symbols", "WideTable", "to_table", "to_words"]
