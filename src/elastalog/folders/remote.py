"""Files at an address, through pyarrow: who may read and write, and where an endpoint is, it finds out as it always
does, from the environment, from the files of the cloud's own tools, or from the address.

An object store may answer late, or ask to be asked less often: every request is repeated with growing pauses. An object
appears when all of it has arrived, so a put is repeated whole."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from elastalog.diagnostics.diagnostic import ElastalogError, error, finding
from elastalog.folders.addresses import inside, is_address, without_secrets
from elastalog.folders.local import Files, folder_of_this_process

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_MADE = ".folder"
"""An empty file that stands for a folder: object stores have none."""

_AT_ONCE = 16
_LEFT = (OSError, ValueError)
"""What removing may raise, the second when this process ends: files that are no longer referred to do no harm."""

_NO_USE = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "HTTP 403")
"""What the server says when asking again is of no use."""


class UnreachableError(ElastalogError):
    """An address could not be reached, even after several tries."""


class Patience:
    """How long a request is repeated."""

    attempts: ClassVar[int] = 8
    first_pause: ClassVar[float] = 0.1
    longest_pause: ClassVar[float] = 10.0

    def tried(self, request: Callable[[], T], location: str) -> T:
        """The answer to a request, repeated while it fails."""
        pause = self.first_pause
        for attempt in range(1, self.attempts + 1):
            try:
                return request()
            except FileNotFoundError:
                raise
            except OSError as error:
                if attempt == self.attempts or any(word in str(error) for word in _NO_USE):
                    raise _unreachable(location, error) from None
                time.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, self.longest_pause)
        raise AssertionError("unreachable")


PATIENCE = Patience()


@lru_cache(maxsize=8)  # each has some thirty open files
def _file_system(root: str) -> tuple[Any, str]:
    """The file system of an address, and its name for the place that the address begins with."""
    from pyarrow import fs

    try:
        found, base = s3_file_system(root) if root.startswith("s3://") else fs.FileSystem.from_uri(root)
    except (OSError, ValueError) as error:  # an unknown scheme, or no such option
        raise _unreachable(root, error) from None
    return found, base


def remote_files(location: str) -> RemoteFiles:
    """The files of the server that an address is of."""
    parts = urlsplit(location)
    return RemoteFiles(*_file_system(urlunsplit((parts.scheme, parts.netloc, "", parts.query, ""))))


class RemoteFiles(Files):
    """Files of a server. `base`: the file system's name for what an address begins with, such as a bucket."""

    def __init__(self, system: Any, base: str) -> None:
        self._system = system
        self._base = base

    def _path(self, location: str) -> str:
        return f"{self._base.rstrip('/')}/{unquote(urlsplit(location).path).strip('/')}"

    @contextmanager
    def writing(self, location: str) -> Iterator[pa.NativeFile]:
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        yield sink
        data = sink.getvalue()

        def put() -> None:
            # Not `with`: leaving such a block by an error would complete the object.
            out = self._system.open_output_stream(self._path(location), compression=None)
            out.write(data)
            out.close()

        PATIENCE.tried(put, location)

    @contextmanager
    def parquet(self, location: str) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        with parquet.ParquetFile(pa.BufferReader(self._buffer(location))) as file:
            yield file

    def content(self, location: str) -> bytes:
        content: bytes = self._buffer(location).to_pybytes()
        return content

    def _buffer(self, location: str) -> pa.Buffer:
        def get() -> pa.Buffer:
            with self._system.open_input_file(self._path(location)) as file:
                return file.read_buffer()

        return PATIENCE.tried(get, location)

    def exists(self, location: str) -> bool:
        try:
            PATIENCE.tried(lambda: self._system.open_input_file(self._path(location)).close(), location)
            return True
        except FileNotFoundError:
            return False

    def remove(self, locations: Iterable[str]) -> None:
        paths = [self._path(location) for location in locations]
        if len(paths) == 1:
            self._remove(paths[0])
        elif paths:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(self._remove, paths))

    def _remove(self, path: str) -> None:
        with suppress(*_LEFT):
            self._system.delete_file(path)

    def copy(self, location: str, to: str) -> None:
        PATIENCE.tried(lambda: self._system.copy_file(self._path(location), self._path(to)), to)

    def make_folder(self, location: str) -> None:
        with self.writing(inside(location, _MADE)):
            pass

    def is_folder(self, location: str) -> bool:
        return self.exists(inside(location, _MADE))

    def remove_folder(self, location: str) -> None:
        self._remove(self._path(inside(location, _MADE)))  # who looks for it knows at once
        with suppress(*_LEFT):
            self._system.delete_dir(self._path(location))

    def keep_only(self, location: str, kept: set[str]) -> None:
        from pyarrow import fs

        root = self._path(location)
        paths = {self._path(file) for file in kept}
        with suppress(*_LEFT):
            for info in self._system.get_file_info(fs.FileSelector(root, allow_not_found=True)):
                if info.type is fs.FileType.Directory:
                    self._system.delete_dir(info.path)
                elif info.path not in paths and not info.path.endswith(_MADE):
                    self._remove(info.path)

    def names_below(self, location: str) -> list[str]:
        """The files in a folder and those below it, by their paths within it. Raises OSError if there is no folder."""
        from pyarrow import fs

        root = self._path(location).rstrip("/")
        found = self._system.get_file_info(fs.FileSelector(root, recursive=True))
        return [os.path.relpath(info.path, root) for info in found if info.type is fs.FileType.File]


def _unreachable(location: str, error: Exception) -> UnreachableError:
    place = without_secrets(location) if is_address(location) else location
    told = finding("E0877", location=place, place=place, why=without_secrets(str(error))[:300])
    return UnreachableError([told])


_SWITCHES = frozenset(
    {"allow_bucket_creation", "allow_bucket_deletion", "allow_delayed_open", "anonymous", "force_virtual_addressing"}
)
_WORDS = frozenset({"region", "scheme", "endpoint_override", "tls_ca_file_path", "role_arn"})
_SECONDS = frozenset({"connect_timeout", "request_timeout"})
_OF_ARROW = frozenset({"smart_defaults", "tls_ca_dir_path", "tls_verify_certificates"})
"""What pyarrow takes in an address only; a file system with one of these has no limits of ours."""

_CONNECT, _REQUEST, _ATTEMPTS = 10.0, 60.0, 2
"""Seconds until a connection must stand, seconds without a byte after which an answer is given up, and how often a
request is sent before that is an error here."""


def s3_file_system(root: str) -> tuple[Any, str]:
    """The file system of an address of a bucket, and the bucket's name. Raises ValueError for an unknown option,
    OSError if the bucket's region cannot be found."""
    from pyarrow import fs

    parts = urlsplit(root)
    bucket = parts.netloc.rpartition("@")[2]
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if _OF_ARROW & given.keys():
        made: tuple[Any, str] = fs.FileSystem.from_uri(root)
        return made
    options: dict[str, Any] = {"connect_timeout": _CONNECT, "request_timeout": _REQUEST, "allow_delayed_open": True}
    for name, value in given.items():
        options[name] = _option(name, value)
    if parts.password is not None:
        options |= {"access_key": unquote(parts.username or ""), "secret_key": unquote(parts.password)}
    endpoint = str(options.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL", ""))
    if "region" not in options and (not endpoint or endpoint.endswith(".amazonaws.com")):
        options["region"] = fs.resolve_s3_region(bucket)
    retrying = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(background_writes=False, retry_strategy=retrying, **options), bucket


def _option(name: str, value: str) -> Any:
    if name in _WORDS:
        return value
    if name in _SECONDS:
        return float(value)
    if name not in _SWITCHES:
        raise ValueError(f"`{name}` is no option of an S3 address")
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValueError(f"`{name}` is true or false, not `{value}`")
    return value.lower() in ("true", "1")


class RemoteFolder:
    """A folder at an address, whose files are fetched into `folder`, one of this process. `given`: the address with its
    secrets; `address` is the one to show."""

    def __init__(self, address: str) -> None:
        self.given = address
        self.address = without_secrets(address)
        try:
            self._files = remote_files(address)
        except UnreachableError as fault:  # an unknown scheme, or no such option
            raise self._unreadable(fault) from None
        self.folder = folder_of_this_process()

    def fetch(self, name: str) -> Path | None:
        """Fetches a file by its path within the folder. None if there is none."""
        to = self.folder / name
        if not to.resolve().is_relative_to(self.folder.resolve()):  # names come from far away
            raise self._unreadable(ValueError(f"it has a file named `{name}`"))
        to.parent.mkdir(parents=True, exist_ok=True)
        data = self.read(name)
        if data is None:
            return None
        to.write_bytes(data)
        return to

    def read(self, name: str) -> bytes | None:
        """The content of a file by its path within the folder. None if there is none."""
        try:
            return self._files.content(inside(self.given, name))
        except FileNotFoundError:
            return None
        except UnreachableError as fault:
            raise self._unreadable(fault) from None

    def fetch_all(self) -> Path:
        """Fetches every file. Raises ElastalogError if the folder is not there."""
        try:
            names = self._files.names_below(self.given)
        except OSError as fault:
            raise self._unreadable(fault) from None
        for name in names:
            self.fetch(name)
        return self.folder

    def _unreadable(self, fault: Exception) -> ElastalogError:
        if self.address.startswith(("http:", "https:")):
            return error("E0875.service", location=self.address, address=self.address)
        why = " ".join(fault.diagnostics[0].notes) if isinstance(fault, UnreachableError) else str(fault)
        return error("E0875", location=self.address, address=self.address, why=without_secrets(why)[:300])
