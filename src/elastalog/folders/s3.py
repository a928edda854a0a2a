"""The file system of an address `s3://…`.

As pyarrow makes it of an address by itself, a put goes through the threads that Arrow shares between all files of the
process, a server that takes a connection and says nothing is asked thirty times before that is an error, and a file
that is thrown away unfinished is completed while Python's lock is held. So it is made here with limits: a put belongs
to the thread that asked for it, every wait ends, and who asks again is `remote.Patience`."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

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
    """The file system of an address that is a bucket, and the name of the bucket. Raises ValueError for an option that
    there is not, OSError where the bucket's region cannot be found."""
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
    if "region" not in options and "endpoint_override" not in options:
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
