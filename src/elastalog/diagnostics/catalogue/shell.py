"""Errors of the interactive shell."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

SHELL: tuple[Entry, ...] = (
    Entry(
        "E0651",
        "unknown command of the shell",
        "Every line of the shell starts with a command, such as `insert`, `commit` or `query`; `help` lists them. A"
        " fact alone is no command: say whether it is to be inserted, deleted or queried.",
        "edge(1, 2)",
        "insert edge(1, 2)",
    ),
    Entry(
        "E0652",
        "wrong use of a command of the shell",
        "The command was given arguments that it does not take, lacks one that it needs, or can not be used now."
        " `help` with the name of the command shows how it is written.",
        "insert",
        "insert edge(1, 2)",
    ),
)
