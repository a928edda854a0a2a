"""Diagnostics as answers of a service: `application/problem+json` with a suitable status."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import compile_path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached, finding, render_json
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.storage.errors import EpochToCome

log = logging.getLogger("elastalog.web")

PROBLEM: Final = "application/problem+json"
RETRY_AFTER: Final = "1"

STATUS: Final[Mapping[str, int]] = {
    "E0606": 404,  # no such relation
    "E0701": 404,  # a fact that does not hold
    "E0702": 409,  # a fact that holds
    "E0603": 504,  # too slow
    "E0663": 507,  # it needs too much memory
    "E0813": 410,  # an epoch that is gone; 404 for one that is still to come
    "E0814": 403,  # a store that is only read
    "E0815": 410,  # no store that would keep epochs
    "E0921": 504,
    "E0922": 503,
    "E0923": 401,
    "E0924": 403,
    "E0925": 413,
    "E0926": 400,
    "E0928": 421,
    "E0929": 403,
    "E0930": 404,
    "E0931": 406,
    "E0936": 503,
    "E0938": 409,
    "E0939": 503,
    "E1007": 409,  # an answer about an epoch that is not the last any more
}
"""The HTTP status by code of the diagnostic; 422 for all others."""


_OF_STORE: Final = "E08"
"""How the codes begin that tell of the store, and where it is."""

_HERE: Final = (
    (r"give it a value: `db\.query.*", 'its value stands in the body of `POST /query`: `"parameters": {"name": 1}`'),
    (r"(`missing|`unwanted)=\[…\]`, `--.*", r"put it into \1`"),
    (
        r"allow more: `--timeout`, of a service `--question-time`, in Python .*",
        "allow more: `seconds` in the body, up to `--question-time` of the service",
    ),
    (r"`elastalog log`, in Python `db\.log\(\)`,|`db\.log\(\)`|`elastalog log`", "`GET /epochs`"),
    (r"`elastalog query [^`]*`", "`POST /query`"),
    (r"`elastalog show`", "`GET /program`"),
    (r"apart: `db\.apply\(.*", "apart, as `inserted` and `deleted`"),
    (r"; only `removerule` and Python.*", ", or its number as a number: `[1]`"),
    (r"`batch=`, `--batch`, ", ""),
    (r" \((?:as an option|as options|as a command|on the command line)\b[^)]*\)| \(`(?:--|elastalog )[^)]*\)", ""),
    (r", `--[^`]*`(?=\))|[,;:] (?:on the command line|in Python),? `[^`]*`(?: gives the values)?", ""),
    (r"`why_not`", "`GET /why-not?fact=…`"),
    (r"`explain`", "`GET /proof?fact=…`"),
    (r"`query`(?= finds| shows)", "`POST /query`"),
    (r"`(suggest|blame)`", r"`POST /\1`"),
    (r"`epochs=\(n - 1, n\)`", '`"epochs": [n - 1, n]`'),
    (r"`(over|candidates)=", r'`"\1": '),
)
"""What advice of other interfaces is called over HTTP."""

_EXPECTED: Final[Mapping[str, str]] = {
    "bool": "`true` or `false`",
    "int": "a whole number",
    "float": "a number",
    "string": "a text",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
    "datetime": "a time, as `2026-11-16T12:00:00Z`",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le}",
}
"""What is expected, by how the name of a fault begins."""


class Refused(HTTPException):
    """A diagnostic, raised through the framework that handles a request."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(status_of(diagnostic))
        self.diagnostic = diagnostic


def status_of(diagnostic: Diagnostic, usual: int = 422) -> int:
    """The HTTP status of a diagnostic."""
    return STATUS.get(diagnostic.code, usual)


def problem(diagnostics: tuple[Diagnostic, ...], status: int | None = None) -> Response:
    """The answer for diagnostics; the first one determines its type."""
    from elastalog.diagnostics.catalogue import CATALOGUE

    first = diagnostics[0]
    number = status or status_of(first)
    entry = CATALOGUE.get(first.code)
    body: dict[str, Any] = {
        "type": f"urn:elastalog:{first.code}",
        "title": first.message if entry is None else entry.title,
        "status": number,
        "detail": first.message,
        "code": first.code,
        "help": _advice(first.help),
        "diagnostics": diagnostics_told(diagnostics),
    }
    headers = {}
    if number == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="elastalog"'
    if number == 503:
        headers["Retry-After"] = RETRY_AFTER
    return Response(json.dumps(body), number, headers, PROBLEM)  # in ASCII: a name may hold what UTF-8 cannot


def diagnostics_told(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics for clients: the help says what to do over HTTP, and our client for Python has that for Python too.
    Where the store lies is none of theirs."""
    found: list[dict[str, Any]] = json.loads(render_json(diagnostics))
    for one in found:
        if (advice := _advice(one["help"])) != one["help"]:
            one["help"], one["help_in_python"] = advice, one["help"]
        if one["code"].startswith(_OF_STORE):
            one["location"] = None
    return found


def _advice(text: str | None) -> str | None:
    for theirs, ours in _HERE if text is not None else ():
        text = re.sub(theirs, ours, text or "")
    return text


async def of_error(_: Request, error: Exception) -> Response:
    """The answer for an error of the engine."""
    assert isinstance(error, ElastalogError)
    if isinstance(error, EpochToCome):
        return problem(error.diagnostics, 404)
    usual = 503 if isinstance(error, LimitReached) else 422
    return problem(error.diagnostics, status_of(error.diagnostics[0], usual))


async def of_refusal(request: Request, error: Exception) -> Response:
    """The answer for a request refused by the framework or by our own checks."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Refused):
        return problem((error.diagnostic,), error.status_code)
    described = request.app.openapi()["paths"].items()
    fitting = [calls for path, calls in described if compile_path(path)[0].match(request.url.path)]
    status = 405 if fitting and error.status_code == 404 else error.status_code
    code = {404: "E0930", 405: "E0930"}.get(status, "E0926")
    told = {404: "there is no such call", 405: "method not allowed"}.get(status, str(error.detail).lower())
    allowed = sorted(method.upper() for calls in fitting for method in calls) if status == 405 else []
    advice = f"call it with {' or '.join(allowed)}; see /api/docs" if allowed else "see /api/docs"
    if status == 404:
        *above, last = request.url.path.split("/")
        paths = (path.split("/") for path, _ in described)
        known = {path[len(above)] for path in paths if len(path) > len(above)}
        advice = did_you_mean(last, (name for name in known if "{" not in name)) or advice
    found = problem((Diagnostic(code, told, help=advice),), status)
    found.headers.update({"Allow": ", ".join(allowed)} if allowed else error.headers or {})
    return found


async def of_unknown(request: Request) -> Response:
    """The answer for an address of the interface that is no call, where other addresses are pages."""
    path = request.url.path
    if path.endswith("/"):
        return RedirectResponse(request.url.replace(path=path.rstrip("/")))
    return await of_refusal(request, HTTPException(404))


async def of_malformed(request: Request, error: Exception) -> Response:
    """The answer for a request that does not fit its call."""
    from fastapi.exceptions import RequestValidationError

    assert isinstance(error, RequestValidationError)
    kind = request.headers.get("Content-Type", "")
    taken = request.scope["route"].dependant.body_params
    fields = [name for one in taken for name in one.field_info.annotation.model_fields]
    told = dict.fromkeys(_malformed(one, kind, fields) for one in error.errors()[:20])
    return problem(tuple(told), 400)


def _malformed(fault: Mapping[str, Any], kind: str, fields: Sequence[str]) -> Diagnostic:
    """What is wrong with a request, from its content type and the names of the fields that its body may have."""
    if fault["type"] == "json_invalid":
        reason = fault["ctx"]["error"][:300].lower()
        return finding("E0926.malformed_2", reason=reason, fault=fault["loc"][-1])
    if fault["loc"] == ("body",) and fault["type"] != "missing" and "json" not in kind.lower():
        return finding("E0926.malformed_3", kind=kind[:100])
    where = ".".join(str(part) for part in fault["loc"])
    expected = next((words for name, words in _EXPECTED.items() if fault["type"].startswith(name)), None)
    told = str(fault["msg"])[:300].lower()
    if expected is not None:
        told = f"{expected.format(**fault.get('ctx', {}))} is expected"
        if fault["type"].endswith("_parsing"):
            told += f", not `{str(fault['input'])[:100]}`"
    if fault["type"] == "extra_forbidden":
        known = ", ".join(f"`{one}`" for one in fields)
        return finding("E0926.field", where=where, near=did_you_mean(str(fault["loc"][-1]), fields), known=known)
    if fault["type"] == "literal_error":
        told = f"this is {fault['ctx']['expected']}".replace("'", "`")
    elif fault["type"] == "missing":
        told = "an object is expected" if where == "body" else "this is missing"
    elif fault["loc"][:2] in (("query", "epoch"), ("path", "epoch")):  # whichever of its kinds it was tried as
        where, told = "epoch", "an epoch is a number, or the one in force at a time, such as `2026-11-18T09:30`"
    elif fault["type"] in ("list_type", "dict_type") and fault["loc"][1:2] in (("inserted",), ("deleted",)):
        where = ".".join(str(part) for part in fault["loc"][:4])
        told = 'facts are a list of lists, `[[1, 2]]`, or of objects, `[{"from": 1, "to": 2}]`'
    return finding("E0926.malformed", where=where, fault=told)


async def of_defect(request: Request, error: Exception) -> Response:
    """The answer for a defect of ours: the details are logged, not sent."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    body = {
        "type": "about:blank", "title": "internal error", "status": 500, "code": "internal", "help": None,
        "detail": "this is a defect of Elastalog; the log of the service has more", "diagnostics": [],
    }  # fmt: skip
    return JSONResponse(body, 500, media_type=PROBLEM)
