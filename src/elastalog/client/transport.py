"""Sends requests to a service; its refusals are raised as the diagnostics that it sent."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached, error, warn_of
from elastalog.relations.schema import UnknownRelation
from elastalog.storage.errors import read_only

if TYPE_CHECKING:
    import pyarrow as pa

API: Final = "/api/v1"
ARROW: Final = "application/vnd.apache.arrow.stream"
WARNINGS: Final = "X-Elastalog-Warnings"
_LIMITS: Final = (503, 504, 507)


class _Connection(http.client.HTTPConnection):
    """A connection that closes its socket when it is collected, because its thread ended or its client was not
    closed."""

    def __del__(self) -> None:
        self.close()


class _SecureConnection(http.client.HTTPSConnection, _Connection):
    """The same over TLS."""


class Transport:
    """Connections to one address, one for each thread, kept open."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise error("E0933", url=url, reason="it is not the address of a service")
        self._path = parts.path.rstrip("/").removesuffix(API)
        self.url = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._parts = parts
        self._token = token
        self._timeout = timeout
        self._local = threading.local()

    def json(self, *asked: Any, **options: Any) -> Any:
        """The answer to a call, as JSON; None if it is empty. Arguments as for `fetch`."""
        data = self.fetch(*asked, **options)
        if not data:
            return None
        try:
            told = json.loads(data)
        except ValueError:
            raise error("E0934", url=self.url, status=200) from None
        _warn_of(told.get("warnings", ()) if isinstance(told, dict) else ())
        return told

    def fetch(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        accept: str = "application/json",
        key: str | None = None,
    ) -> bytes:
        """The answer to a call. Raises ElastalogError with the diagnostics of a refusal."""
        headers = {"Accept": accept, **({} if key is None else {"Idempotency-Key": key})}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        # A connection that was kept may be closed by now; what may not be done twice has a key.
        is_harmless = method == "GET" or key is not None
        for is_last in (not is_harmless or not self._is_kept(), True):
            try:
                connection = self._connection(is_fresh=not is_harmless)
                connection.request(method, self._target(path, query), data, self._headers(headers, data))
                response = connection.getresponse()
                answer = response.read()
            except (OSError, http.client.HTTPException) as fault:
                self.close()
                if is_last and isinstance(fault, TimeoutError):
                    raise error("E0933.late", url=self.url, seconds=self._timeout) from None
                if is_last:
                    raise error("E0933", url=self.url, reason=_reason(fault)) from None
            else:
                return self._checked(response, answer)
        raise AssertionError("the second try is the last")

    def lines(self, path: str, query: Mapping[str, Any], last: int | None) -> Iterator[str]:
        """The lines of an event stream as they arrive, over a connection of its own."""
        connection = self._open()
        try:
            headers = {"Accept": "text/event-stream"}
            if last is not None:
                headers["Last-Event-ID"] = str(last)
            connection.request("GET", self._target(path, query), None, self._headers(headers, None))
            response = connection.getresponse()
            if response.status != 200:
                self._checked(response, response.read())
            while line := response.readline():
                yield line.decode("utf-8").rstrip("\n")
        except (OSError, http.client.HTTPException) as fault:
            raise Broken.of("E0933", url=self.url, reason=_reason(fault)) from None
        finally:
            connection.close()

    def close(self) -> None:
        """Closes the connection of this thread."""
        kept: http.client.HTTPConnection | None = getattr(self._local, "kept", None)
        if kept is not None:
            kept.close()
            self._local.kept = None

    def _is_kept(self) -> bool:
        return getattr(self._local, "kept", None) is not None

    def _connection(self, is_fresh: bool) -> http.client.HTTPConnection:
        if is_fresh:
            self.close()
        if not self._is_kept():
            self._local.kept = self._open()
        kept: http.client.HTTPConnection = self._local.kept
        return kept

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return _SecureConnection(host, port, timeout=self._timeout, context=context)
        return _Connection(host, port, timeout=self._timeout)

    def _target(self, path: str, query: Mapping[str, Any] | None) -> str:
        given = {name: _written(value) for name, value in (query or {}).items() if value is not None}
        return f"{self._path}{API}{path}{'?' + urlencode(given) if given else ''}"

    def _headers(self, own: Mapping[str, str], data: bytes | None) -> dict[str, str]:
        headers = dict(own)
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if data is not None:
            headers["Content-Type"] = "application/json"
        return headers

    def _checked(self, response: http.client.HTTPResponse, answer: bytes) -> bytes:
        if response.status < 300:
            _warn_of(json.loads(response.getheader(WARNINGS, "[]")))
            return answer
        try:
            told = json.loads(answer)
            found = [diagnostic_of(one) for one in told["diagnostics"]]
            first = found[0].code
        except (ValueError, LookupError, TypeError):
            raise error("E0934", url=self.url, status=response.status) from None
        if response.status == 401:
            raise error(
                "E0923.refused_token",
                told=f"`{self.url}` " + ("needs a token" if self._token is None else "does not know this token"),
                given="give the one that `elastalog serve` printed, or was started with: `connect(url, token=…)`",
            )
        if first == "E0606":
            raise UnknownRelation(found)
        raise (LimitReached if response.status in _LIMITS else ElastalogError)(found)


class Calls:
    """The calls of a service, at one epoch given by number or time, or at the latest (None)."""

    def __init__(self, transport: Transport, epoch: int | str | None) -> None:
        self.epoch = epoch
        self._transport = transport

    def ask(self, call: str, **given: Any) -> Any:
        """The answer to a call, such as `GET /epochs`, as JSON."""
        return self._transport.json(*self._request(call, given))

    def table(self, call: str, **given: Any) -> pa.Table:
        """The answer to a call, as an Arrow table."""
        import pyarrow as pa

        with pa.ipc.open_stream(self._transport.fetch(*self._request(call, given), accept=ARROW)) as reader:
            return reader.read_all()

    def ask_last(self, call: str, key: str | None = None, **given: Any) -> Any:
        """The answer to a call about the latest epoch. Raises ElastalogError if this is of an earlier one, and the call
        would do something."""
        if self.epoch is not None and not call.startswith("GET "):
            raise read_only("it is a client of an earlier epoch")
        return self._transport.json(*_parts(call, given), key=key)

    def _request(self, call: str, given: Mapping[str, Any]) -> tuple[str, str, Any, Any]:
        """Method, path, query and body of a request at the epoch, which goes into the path."""
        method, path, *rest = _parts(call, given)
        return method, path if self.epoch is None else f"/at/{quote(str(self.epoch))}{path}", *rest


def _parts(call: str, given: Mapping[str, Any]) -> tuple[str, str, Any, Any]:
    method, path = call.split(" ", 1)
    return (method, path, given, None) if method == "GET" else (method, path, None, given)


class Broken(ElastalogError):
    """The connection of an event stream broke; it can be resumed."""


def _written(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def diagnostic_of(told: Mapping[str, Any]) -> Diagnostic:
    """A diagnostic as the service sent it; places in texts that are not here are given by line and column."""
    label = next((one for one in told["labels"] if one["primary"]), None)
    place = None if label is None else f"{label['file']}:{label['line']}:{label['column']}"
    return Diagnostic(
        told["code"], told["message"], notes=tuple(told["notes"]), severity=told["severity"],
        help=told.get("help_in_python", told["help"]), location=told["location"] or place,
    )  # fmt: skip


def _warn_of(told: Iterable[Mapping[str, Any]]) -> None:
    for one in told:
        warn_of(diagnostic_of(one))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer came in time"
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "it speaks HTTP without TLS; its address begins with `http://`"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
