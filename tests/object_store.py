"""A bucket of a server that speaks S3, in a process of its own on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.object_server import TROUBLE, TROUBLED, Trouble

ROOT = Path(__file__).parents[1]


class Bucket:
    """`client`: of boto3, past what troubles others only as long as nothing does."""

    def __init__(self, client: Any, port: int) -> None:
        self.client = client
        self.port = port

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
    def troubled(self, trouble: Trouble) -> Iterator[None]:
        """Within the block, requests meet trouble."""
        self._ask("PUT", TROUBLE, json.dumps(asdict(trouble)).encode())
        try:
            yield
        finally:
            self._ask("PUT", TROUBLE, json.dumps(asdict(Trouble())).encode())

    def met(self) -> Counter[str]:
        """How often which request has met trouble, within the block."""
        return Counter(json.loads(self._ask("GET", TROUBLED)))

    def clear(self) -> None:
        """Makes the bucket anew, empty."""
        self._ask("POST", "/moto-api/reset", b"")
        self.client.create_bucket(Bucket="bucket")

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def bucket_on_this_machine() -> Iterator[Bucket]:
    """A server with a bucket, for the length of the block."""
    boto3 = pytest.importorskip("boto3", reason="needs boto3 and moto's server")
    pytest.importorskip("moto.server", reason="needs boto3 and moto's server")
    command = [sys.executable, "-m", "tests.object_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            port = int(server.stdout.readline())
            client = boto3.client(
                "s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
                aws_access_key_id="secret-key", aws_secret_access_key="secret-word",
            )  # fmt: skip
            yield Bucket(client, port)
            client.close()
        finally:
            server.stdin.close()  # so it ends
