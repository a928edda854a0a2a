"""A bucket of a server on this machine that speaks S3, and can be made to answer late, or not at all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Bucket:
    """`trouble`: called with every request, as `PUT /bucket/key`; may return an HTTP status to be given in place of the
    answer, before (`"503"`) or after the request was carried out (`"late 503"`), or None."""

    def __init__(self, client: Any, port: int) -> None:
        self.client = client
        self.port = port
        self.trouble: Callable[[str], str | None] = lambda request: None
        self.requests: list[str] = []
        self.delay = 0.0

    def address(self, folder: str) -> str:
        place = f"127.0.0.1%3A{self.port}"
        return f"s3://secret-key:secret-word@bucket/{folder}?endpoint_override={place}&scheme=http&region=us-east-1"

    def put(self, folder: Path, name: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.client.put_object(
                    Bucket="bucket", Key=f"{name}/{path.relative_to(folder)}", Body=path.read_bytes()
                )

    def keys(self, folder: str) -> set[str]:
        found = self.client.list_objects_v2(Bucket="bucket", Prefix=folder)
        return {entry["Key"].removeprefix(f"{folder}/") for entry in found.get("Contents", ())}

    @contextmanager
    def troubled(self, trouble: Callable[[str], str | None], delay: float = 0.0) -> Iterator[None]:
        """Within the block, requests meet trouble, and are answered late."""
        self.trouble, self.delay = trouble, delay
        try:
            yield
        finally:
            self.trouble, self.delay = lambda request: None, 0.0


class _Troubled:
    """The server's application, behind what troubles it."""

    def __init__(self, application: Application, bucket: Callable[[], Bucket | None]) -> None:
        self._application = application
        self._bucket = bucket

    def __call__(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        bucket = self._bucket()
        if bucket is None:
            return self._application(environment, start)
        request = f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}"
        bucket.requests.append(request)
        time.sleep(bucket.delay)
        status = bucket.trouble(request)
        if status is None:
            return self._application(environment, start)
        if status.startswith("late "):
            list(self._application(environment, lambda *_: None))
            status = status.removeprefix("late ")
        else:
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
        start(f"{status} Trouble", [("Content-Type", "application/xml"), ("Content-Length", "0")])
        return [b""]


@contextmanager
def bucket_on_this_machine() -> Iterator[Bucket]:
    """A server with an empty bucket, for the length of the block."""
    boto3 = pytest.importorskip("boto3", reason="needs boto3 and moto's server")
    moto = pytest.importorskip("moto.server", reason="needs boto3 and moto's server")
    serving = pytest.importorskip("werkzeug.serving", reason="needs boto3 and moto's server")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # it has a line for every request
    made: list[Bucket] = []
    application = _Troubled(
        moto.DomainDispatcherApplication(moto.create_backend_app), lambda: made[0] if made else None
    )
    server = serving.make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = boto3.client(
        "s3", endpoint_url=f"http://127.0.0.1:{server.port}", region_name="us-east-1",
        aws_access_key_id="secret-key", aws_secret_access_key="secret-word",
    )  # fmt: skip
    client.create_bucket(Bucket="bucket")
    made.append(Bucket(client, server.port))
    try:
        yield made[0]
    finally:
        server.shutdown()
        thread.join()
        # The server's state is that of the process.
        client.close()
        _forget_everything()


def _forget_everything() -> None:
    from moto.s3.models import s3_backends

    for account in s3_backends.values():
        for backend in account.values():
            backend.reset()
