"""Progress of an evaluation on a terminal: the stratum, the iteration, the facts found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elastalog.cli.exits import Verbosity

if TYPE_CHECKING:
    from elastalog.analysis.program import CheckedProgram
    from elastalog.backends.watch import Progress

_INTERVAL = 0.1
_LONGEST_NAMES = 40


@contextmanager
def progress_shown(program: CheckedProgram, verbosity: Verbosity) -> Iterator[Callable[[Progress], None] | None]:
    """What to tell of progress; None where nobody watches: standard error is no terminal, or the user wants quiet."""
    if verbosity == "quiet" or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    from elastalog.planning.lower import lower

    names = [_names(stratum.relations) for stratum in lower(program).strata]
    with Console(stderr=True).status("reading facts", spinner="dots") as status:
        yield _Reporter(names, status.update).report


class _Reporter:
    """Turns the news of an evaluation into a line, not more often than one can read."""

    def __init__(self, names: list[str], show: Callable[[str], None]) -> None:
        self._names = names
        self._show = show
        self._began = time.monotonic()
        self._shown = 0.0
        self._found: dict[int, int] = {}

    def report(self, news: Progress) -> None:
        self._found[news.stratum] = self._found.get(news.stratum, 0) + news.found
        now = time.monotonic()
        if now - self._shown < _INTERVAL:
            return
        self._shown = now
        facts = sum(self._found.values())
        iteration = f", iteration {news.iteration}" if news.iteration else ""
        self._show(
            f"stratum {news.stratum + 1} of {len(self._names)}{self._names[news.stratum]}{iteration}:"
            f" {facts:,} facts derived, {now - self._began:.1f} s"
        )


def _names(relations: tuple[str, ...]) -> str:
    """The relations of a stratum, those we made left out, in parentheses and not too long."""
    from elastalog.planning.logical import is_hidden_name

    text = ", ".join(name for name in relations if not is_hidden_name(name))
    shortened = text if len(text) <= _LONGEST_NAMES else text[: _LONGEST_NAMES - 1] + "…"
    return f" ({shortened})" if text else ""
