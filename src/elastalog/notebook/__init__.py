"""Notebooks: `%load_ext elastalog`, then cells of Datalog."""

from elastalog.notebook.magic import load

__all__ = ["load"]
