"""Codes of the language server."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

EDITING: tuple[Entry, ...] = (
    Entry(
        "E0906",
        "the language server is not installed",
        "`elastalog lsp` speaks the protocol of editors with the help of pygls, which comes with the extra `lsp`.",
        "pip install elastalog\nelastalog lsp",
        'pip install "elastalog[lsp]"\nelastalog lsp',
    ),
    Entry(
        "E0907",
        "a name that cannot be changed",
        "A new name is written everywhere or nowhere. It must be a name, and mean nothing yet where the old one stands;"
        " and every place must be in a file as it is, not in what a macro stands for.",
        "rename `edge` to `path` in a program that has a relation `path`",
        "rename `edge` to `link`",
    ),
)
