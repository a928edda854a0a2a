"""Object code is used if it is whole, of the very operator, and in a folder of the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elastalog.jit import objects
from elastalog.jit.objects import ObjectCode, decode, encode, file_name, find, keep

CODE = ObjectCode(b"\x7fELF and so on", "elastalog_total", ("PyErr_SetString",))
PRINT = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_is_kept_is_found() -> None:
    assert find("elastalog.a.total", PRINT) is None
    keep("elastalog.a.total", PRINT, CODE)
    assert find("elastalog.a.total", PRINT) == CODE
    assert sorted(path.name for path in objects.user_folder().iterdir()) == [f"a.total-{PRINT}.o"]


def test_the_folder_is_for_the_user_alone() -> None:
    keep("elastalog.a.total", PRINT, CODE)
    assert objects.user_folder().stat().st_mode & 0o777 == 0o700


def test_another_fingerprint_finds_nothing() -> None:
    keep("elastalog.a.total", PRINT, CODE)
    assert find("elastalog.a.total", PRINT[::-1]) is None
    folder = objects.user_folder()
    (folder / file_name("elastalog.a.total", PRINT)).rename(folder / file_name("elastalog.a.total", PRINT[::-1]))
    assert find("elastalog.a.total", PRINT[::-1]) is None


@pytest.mark.parametrize("place", [0, 30, 60, 100, -1])
def test_a_damaged_byte_is_noticed(place: int) -> None:
    data = bytearray(encode(PRINT, CODE))
    assert decode(PRINT, bytes(data)) == CODE
    data[place] ^= 1
    assert decode(PRINT, bytes(data)) is None


@pytest.mark.parametrize("size", [0, 10, 40, 60, 120])
def test_a_file_cut_short_is_noticed(size: int) -> None:
    assert decode(PRINT, encode(PRINT, CODE)[:size]) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(mode: int) -> None:
    keep("elastalog.a.total", PRINT, CODE)
    folder = objects.user_folder()
    os.chmod(folder, mode)
    assert find("elastalog.a.total", PRINT) is None
    with pytest.raises(PermissionError):
        keep("elastalog.a.total", PRINT, CODE)
    os.chmod(folder, 0o700)
    os.chmod(folder.parent, mode)
    assert find("elastalog.a.total", PRINT) is None


def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    keep("elastalog.a.total", PRINT, CODE)
    folder = objects.user_folder()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert find("elastalog.a.total", PRINT) is None


def test_a_few_versions_of_an_operator_are_kept() -> None:
    for number in range(12):
        keep("elastalog.a.total", f"{number:016}", CODE)
        path = objects.user_folder() / file_name("elastalog.a.total", f"{number:016}")
        os.utime(path, (number, number))
    left = sorted(path.name for path in objects.user_folder().iterdir())
    assert left == [f"a.total-{number:016}.o" for number in range(4, 12)]
