"""Every code that a diagnostic can have, with the text that teaches it.

The texts are in `errors/`, a Markdown file for each group of errors, written as `elastalog explain-error CODE` prints
them: title, explanation, a wrong example and the right one; its messages stand behind these (see `messages`). They are
read when this module is first imported, which happens when an error is to be explained, never at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from elastalog.diagnostics.messages import FOLDER, MESSAGES

_INDENT = "    "


class Entry(NamedTuple):
    """What `elastalog explain-error CODE` shows: why it is an error, a program that has it, and the same program
    corrected."""

    code: str
    title: str
    explanation: str
    example: str
    fix: str


def read_group(name: str) -> tuple[Entry, ...]:
    """The entries of a file in `errors/`, in its order."""
    _, *sections = (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n## ")
    return tuple(map(_entry, sections))


def _entry(section: str) -> Entry:
    heading, _, rest = section.partition(MESSAGES)[0].partition("\n")
    code, _, title = heading.partition(": ")
    explanation, _, examples = rest.partition("\nWrong:\n")
    wrong, _, right = examples.partition("\nRight:\n")
    paragraphs = (" ".join(paragraph.split()) for paragraph in explanation.strip().split("\n\n"))
    return Entry(code, title, "\n\n".join(paragraphs), _example(wrong), _example(right))


def _example(text: str) -> str:
    lines = (line[len(_INDENT) :] for line in text.strip("\n").split("\n"))
    # The mark that reorders text is escaped in the file: in an editor the line would not look like what it holds.
    return "\n".join(lines).replace("\\u202e", "\u202e")


CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {entry.code: entry for entry in sorted(each for path in FOLDER.glob("*.md") for each in read_group(path.stem))}
)
"""Every entry by its code, in the order of the codes."""
