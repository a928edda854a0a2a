"""The calls of a service, one function each: its address, parameters with their limits, required rights and answer.

The OpenAPI description and the page `/api/docs` are made from them. Calls that can be asked of any epoch are also
found below `/at/{epoch}`.
"""

from elastalog.web.routes import questions, updates
from elastalog.web.routes.context import at_any_epoch, at_the_last

__all__ = ["at_any_epoch", "at_the_last", "questions", "updates"]
