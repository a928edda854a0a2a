"""Standard output that can not be written: a full disk behind it, a device that fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError


@contextmanager
def checked_output() -> Iterator[None]:
    """Turns a failure to write standard output during the block into an error. A reader who has seen enough is none."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        # What is left in the buffer would fail once more when Python closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = fault.strerror or str(fault)
        advice = "check where the output goes, and the space left there"
        raise ElastalogError([Diagnostic("E0517", f"cannot write the output: {reason}", help=advice)]) from None
