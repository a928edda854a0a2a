"""A server on this machine that speaks S3, in a process of its own: `python -m tests.object_server`.

It prints its port, serves until its standard input ends, and can be made to answer late, or with errors: `PUT
/-trouble` with a `Trouble` as JSON; `GET /-troubled` says how often which request has met it. Nothing of it is in the
process of the tests: a client that blocks there while it holds the interpreter would wait for a server that cannot
answer."""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
TROUBLE, TROUBLED = "/-trouble", "/-troubled"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What requests meet. `statuses`: one of them, by chance, is given in place of the answer, before (`503`) or after
    (`late 503`) the request was carried out. `only`: how such requests begin, as `PUT /bucket/key`. `first`: each of
    them meets it so often at most. `share`: the chance of it. `delay`: seconds that every request waits."""

    statuses: tuple[str, ...] = ()
    only: str = ""
    first: int = 1 << 30
    share: float = 1.0
    delay: float = 0.0


class Troubled:
    """An application behind what troubles it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._begin(Trouble())

    def _begin(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._met: Counter[str] = Counter()
        self._chance = random.Random(7)

    def __call__(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        request = f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}"
        if request == f"PUT {TROUBLE}":
            given = json.loads(_body(environment))
            self._begin(Trouble(**{**given, "statuses": tuple(given["statuses"])}))
            return _answered(start, "200 OK", b"")
        if request == f"GET {TROUBLED}":
            return _answered(start, "200 OK", json.dumps(self._met).encode())
        time.sleep(self._trouble.delay)
        status = self._status_for(request)
        if status is None:
            return self._application(environment, start)
        if status.startswith("late "):
            list(self._application(environment, lambda *_: None))
        else:
            _body(environment)
        return _answered(start, f"{status.removeprefix('late ')} Trouble", b"")

    def _status_for(self, request: str) -> str | None:
        trouble = self._trouble
        with self._lock:
            if (
                not trouble.statuses
                or not request.startswith(trouble.only)
                or self._met[request] >= trouble.first
                or self._chance.random() >= trouble.share
            ):
                return None
            self._met[request] += 1
            return self._chance.choice(trouble.statuses)


def _body(environment: dict[str, Any]) -> bytes:
    content: bytes = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
    return content


def _answered(start: Any, status: str, content: bytes) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
    return [content]


def main() -> None:
    from moto import server as moto
    from werkzeug import serving

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # it has a line for every request
    application = Troubled(moto.DomainDispatcherApplication(moto.create_backend_app))
    server = serving.make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
