"""A program as it stands in an editor, read as far as it can be."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.editing.occurrences import Occurrence, occurrences_in
from elastalog.editing.places import file_of, offset_in
from elastalog.editing.rooms import Room, rooms_of
from elastalog.program import Program
from elastalog.program.preprocessing import Preprocessing, preprocess
from elastalog.program.program import examine
from elastalog.syntax.tree import Tree


@dataclass(frozen=True)
class Reading:
    """`file` and all that it includes. `tree` holds what can be read, `program` is None while there are errors;
    `diagnostics` are all that the checker has to say. What names mean is found out when it is first asked for."""

    file: str
    source: Source
    tree: Tree
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    files: frozenset[str]

    @cached_property
    def top(self) -> Room:
        """What is declared, components as rooms within rooms."""
        return rooms_of(self.source, self.tree)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every name with what it means, in the order of their places."""
        return tuple(sorted(occurrences_in(self.tree, self.top), key=lambda found: found.span))

    def at(self, file: str, offset: int) -> Occurrence | None:
        """The name at a place of a file; just behind it counts too."""
        found = offset_in(self.source, file, offset)
        if found is None:
            return None
        around = [each for each in self.occurrences if each.span.start <= found <= each.span.end]
        return min(around, key=lambda each: (each.span.end == found, each.span.end - each.span.start), default=None)


def read(file: str, text_of: Callable[[str], str], options: Preprocessing | None = None) -> Reading:
    """Read a program. `text_of` gives the text of a file, as the editor has it or as it is on disk, and raises
    ElastalogError. Nothing is raised: where lines for the preprocessor are at fault, the file stands for itself."""
    file = os.path.abspath(file)
    found: tuple[Diagnostic, ...]
    try:
        root = Source(file, text_of(file))
    except ElastalogError as fault:
        empty = Source(file, "")
        return Reading(file, empty, Tree(empty, ()), None, fault.diagnostics, frozenset((file,)))
    try:
        source, faults = preprocess(root, options or Preprocessing(), text_of), None
    except ElastalogError as fault:
        source, faults = root, fault.diagnostics
    tree, program, found = examine(source)
    if faults is not None:
        program, found = None, faults
    if program is not None:
        found = (*found, *_findings_of_planning(program))
    files = frozenset({file, *(file_of(piece.source) for piece in source.pieces)})
    return Reading(file, source, tree, program, found, files)


def _findings_of_planning(program: Program) -> tuple[Diagnostic, ...]:
    """A group of an aggregate that only recursion binds comes to light when aggregates are rewritten."""
    from elastalog.planning.lower import lower

    try:
        lower(program.checked)
    except ElastalogError as fault:
        return fault.diagnostics
    return ()
