"""State in the address: what a page shows is what its address says, so that it can be sent to a colleague."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """A path, and parameters in order. A parameter without a value is left out; one may be given several times."""

    path: str
    parameters: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(path: str, **parameters: object) -> Address:
        """From a path and its parameters: None, False and empty values are left out."""
        return Address(path).with_(**parameters)

    @staticmethod
    def read(written: str) -> Address:
        """From what a browser shows, without the host."""
        parts = urlsplit(written)
        return Address(parts.path or "/", tuple(parse_qsl(parts.query)))

    def __str__(self) -> str:
        return f"{self.path}?{urlencode(self.parameters)}" if self.parameters else self.path

    def with_(self, **changes: object) -> Address:
        """The same address with some parameters set anew, or left out."""
        kept = tuple(pair for pair in self.parameters if pair[0] not in changes)
        return Address(self.path, kept + tuple(_pairs(changes)))

    def get(self, name: str, default: str = "") -> str:
        """The last value of a parameter."""
        return dict(self.parameters).get(name, default)

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a parameter, each once, in order."""
        return tuple(dict.fromkeys(value for key, value in self.parameters if key == name))

    def number(self, name: str, least: int = 0) -> int | None:
        """A parameter that is a whole number; None where it is none, as somebody may have written anything."""
        text = self.get(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least else None

    @property
    def epoch(self) -> int | None:
        """The epoch that is looked at; None for the latest."""
        return self.number("epoch", 1)


def _pairs(changes: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    for name, value in changes.items():
        if isinstance(value, list | tuple):
            yield from ((name, str(one)) for one in value)
        elif value is not None and value is not False and value != "":
            yield name, "1" if value is True else str(value)
