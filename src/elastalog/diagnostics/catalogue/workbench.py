"""Codes of the workbench's pages."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

WORKBENCH: tuple[Entry, ...] = (
    Entry(
        "E0950",
        "a long fact that was forgotten",
        "Every state of the workbench has an address. A fact with very long texts does not fit into one: the server"
        " remembers it under a mark, for as long as it runs and not too many others have been looked at since.",
        "/fact?long=9f86d081884c7d659a2feaa0, sent to a colleague, after the workbench was started again",
        "open the fact from the table of its relation",
    ),
    Entry(
        "E0951",
        "a file that is no text",
        "A file that is staged on the page Update is a diff file: text in UTF-8, one change a line.",
        "a Parquet file",
        '+calls("shop.cart", "pay.checkout").',
    ),
    Entry(
        "E0953",
        "a fault that is none",
        "A fact can be wrong only if it holds, and missing only if it does not.",
        "`path(1, 2)` is marked as missing, and holds",
        "`path(1, 2)` is marked as wrong",
    ),
    Entry(
        "E0954",
        "no pages",
        "The pages of the workbench are made with NiceGUI, which the extra `web` installs.",
        "pip install elastalog",
        'pip install "elastalog[web]"',
    ),
    Entry(
        "E0955",
        "an empty field",
        "A fact that is added by the form needs a value in every field.",
        'calls("web", )',
        'calls("web", "cart")',
    ),
    Entry(
        "E0956",
        "facts that cannot be read",
        "Pasted facts are lines of values between commas, semicolons or tabs, all with equally many, or JSON: a list of"
        " objects or of lists, or one of them a line.",
        "web,cart\nprices",
        "caller,callee\nweb,cart\ncart,prices",
    ),
)
