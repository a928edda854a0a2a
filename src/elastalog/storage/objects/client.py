"""Objects at an address, with puts that depend on what is there: through obstore, for S3, Google's and Azure's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from elastalog.diagnostics.diagnostic import ElastalogError, finding
from elastalog.folders.addresses import without_secrets
from elastalog.folders.remote import PATIENCE
from elastalog.late import dataclass

T = TypeVar("T")


class Taken(Exception):
    """There is an object already, or it is not the one that was to be replaced."""


Tag: TypeAlias = dict[str, str]
"""What tells the content of an object from any other under its name: a tag, or a version, as servers have it."""


def _tag(told: Mapping[str, Any]) -> Tag:
    return {name: told[name] for name in ("e_tag", "version") if told.get(name) is not None}


@dataclass(frozen=True, slots=True)
class Object:
    """An object as it was read. `written`: when, by the server's clock."""

    data: bytes
    tag: Tag
    written: datetime


class Objects:
    """The objects below an address. Requests that fail are repeated; UnreachableError is raised when that is of no
    use."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._store = _store_at(address)

    def get(self, name: str) -> Object | None:
        """An object, None if there is none."""
        import obstore

        def ask() -> Object:
            found = obstore.get(self._store, name)
            meta = found.meta
            return Object(bytes(found.bytes()), _tag(meta), meta["last_modified"])

        try:
            return self._asked(ask)
        except FileNotFoundError:
            return None

    def tag(self, name: str) -> Tag | None:
        """What tells an object from others under the same name, None if there is none."""
        import obstore

        try:
            return self._asked(lambda: _tag(obstore.head(self._store, name)))
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes) -> Tag:
        """Puts an object where none exists. Raises Taken if there is another; the same may be from an attempt whose
        answer was lost. Returns its tag."""
        return self._put(name, data, "create")

    def replace(self, name: str, data: bytes, tag: Tag) -> Tag:
        """Puts an object in the place of the one with a tag. Raises Taken if that is gone. Returns its tag."""
        return self._put(name, data, tag)

    def _put(self, name: str, data: bytes, mode: Any) -> Tag:
        try:
            return self.put_once(name, data, mode)
        except Taken:
            found = self.get(name)
            if found is None or found.data != data:
                raise
            return found.tag

    def put_once(self, name: str, data: bytes, mode: Any = "create") -> Tag:
        """Puts an object where none exists. Raises Taken for any existing one, even the same."""
        import obstore
        from obstore import exceptions

        def ask() -> Tag:
            try:
                return _tag(obstore.put(self._store, name, data, mode=mode))
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError):
                raise Taken(name) from None
            except (exceptions.NotSupportedError, NotImplementedError) as error:
                raise cannot_write(self.address, f"it has no conditional put ({error})") from None

        return self._asked(ask)

    def remove(self, *names: str) -> None:
        """Removes objects, as far as they exist."""
        import obstore

        for name in names:
            with suppress(FileNotFoundError):
                self._asked(partial(obstore.delete, self._store, name))

    def names(self) -> list[str]:
        """The names of the objects seen below the address: for cleaning up, since a listing may be incomplete."""
        import obstore

        return self._asked(lambda: [entry["path"] for batch in obstore.list(self._store) for entry in batch])

    def _asked(self, ask: Callable[[], T]) -> T:
        from obstore import exceptions

        def request() -> T:
            try:
                return ask()
            except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
                raise OSError(f"HTTP 403: {error}") from None
            except exceptions.BaseError as error:
                raise OSError(str(error).partition("\n")[0]) from None  # what follows is for its developers

        return PATIENCE.tried(request, self.address)


def _store_at(address: str) -> Any:
    try:
        from obstore import store
    except ImportError:
        raise cannot_write(
            address, "the package `obstore` is not installed", 'pip install "elastalog[cloud]"'
        ) from None
    parts = urlsplit(address)
    prefix = unquote(parts.path).strip("/") or None
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    retry: Any = {"max_retries": 2}
    match parts.scheme:
        case "s3":
            options: dict[str, Any] = {"region": given.get("region")}
            if "endpoint_override" in given:
                options["endpoint"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
                options["virtual_hosted_style_request"] = False
            if parts.password is not None:
                options["access_key_id"] = unquote(parts.username or "")
                options["secret_access_key"] = unquote(parts.password)
            options = {name: value for name, value in options.items() if value is not None}
            http: Any = {"allow_http": given.get("scheme") == "http"}
            return store.S3Store(parts.hostname, prefix=prefix, client_options=http, retry_config=retry, **options)
        case "gs" | "gcs":
            return store.GCSStore(parts.hostname, prefix=prefix, retry_config=retry)
        case "abfs" | "abfss":
            return store.AzureStore.from_url(address, retry_config=retry)
        case scheme:
            raise cannot_write(address, f"`{scheme}` has no conditional put")


def cannot_write(address: str, reason: str, advice: str | None = None) -> ElastalogError:
    """The error that no store can be written at an address."""
    place = without_secrets(address)
    usual = "open it with `Store(…, read_only=True)`; write a store on a disk, and copy it with `elastalog backup`"
    told = finding("E0876", location=place, place=place, reason=reason, advice=advice or usual)
    return ElastalogError([told])
