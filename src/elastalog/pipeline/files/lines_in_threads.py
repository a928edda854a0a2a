"""Lines of many facts into one file, by several threads at once: each knows where its part begins before the parts in
front of it are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import accumulate
from typing import BinaryIO, TypeVar

from elastalog.pipeline.files.ahead import Ahead, Part
from elastalog.relations.blocks_of_lines import lines_of, size_of_lines
from elastalog.relations.limits import Integers, Words
from elastalog.relations.words import Dictionary

T = TypeVar("T")

ROWS = 1 << 15
"""Of a part."""


def write_in_threads(
    file: BinaryIO, words: Words, kinds: Integers, delimiter: int, dictionary: Dictionary, threads: int
) -> bool:
    """Writes the lines of rows to a file that is empty. False if some of them cannot be written so: then what the file
    holds is of no use."""
    parts = [words[start : start + ROWS] for start in range(0, len(words), ROWS)]
    sizes = _in_threads([partial(size_of_lines, part, kinds, dictionary) for part in parts], threads)
    begins = [0, *accumulate(sizes[:-1])]
    write = partial(_write_part, file, kinds, delimiter, dictionary)
    return all(_in_threads([partial(write, part, begin) for part, begin in zip(parts, begins, strict=True)], threads))


def _write_part(
    file: BinaryIO, kinds: Integers, delimiter: int, dictionary: Dictionary, words: Words, begin: int
) -> bool:
    for lines in lines_of(words, kinds, delimiter, dictionary):
        if not isinstance(lines, memoryview):
            return False
        while len(lines):
            # Asked for each time: a file that was closed, after a second Ctrl-C, may be another one by that number.
            written = os.pwrite(file.fileno(), lines, begin)
            begin += written
            lines = lines[written:]
    return True


def _in_threads(makes: list[Callable[[], T]], threads: int) -> list[T]:
    with closing(Ahead((Part(make, 0) for make in makes), threads, "writing")) as made:
        made.start()
        return list(made)
