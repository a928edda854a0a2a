"""Folders whose content is executed or believed: never one that somebody else can have filled."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from elastalog.cli.shell import history_file
from elastalog.folders import local as module
from elastalog.folders.local import NotOurs, folder_of_this_process, own_folder, user_cache
from elastalog.pipeline.spark import session

OTHER_USER = 12345


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = own_folder(tmp_path / "a" / "b")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent)] == [0o700, 0o700]
    assert own_folder(made) == made


def _of_another_user(path: Path) -> None:
    path.mkdir()
    os.chown(path, OTHER_USER, OTHER_USER)


def _for_everyone(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def _for_the_group(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def _a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def _in_one_of_another_user(path: Path) -> None:
    path.mkdir()
    os.chown(path.parent, OTHER_USER, OTHER_USER)


def _in_one_for_everyone(path: Path) -> None:
    path.mkdir()
    path.parent.chmod(0o777)


FOREIGN = [_of_another_user, _for_everyone, _for_the_group, _a_link, _in_one_of_another_user, _in_one_for_everyone]


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__.strip("_"))
def test_a_folder_that_others_can_fill_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    if "another_user" in make.__name__ and os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    cache = tmp_path / "cache"
    cache.mkdir()
    make(cache / "elastalog")
    with pytest.raises(NotOurs):
        own_folder(cache / "elastalog")


def test_a_cache_that_others_can_fill_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "elastalog"
    (tmp_path / "elastalog").chmod(0o777)
    assert user_cache() is None


def test_the_java_in_front_of_another_is_never_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a folder whose name anyone can guess, and not in a cache that anyone can write to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = session._in_front_of(Path("/usr/bin/true"))
    assert home.is_relative_to(tmp_path / "elastalog")
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) & 0o022 == 0
    (tmp_path / "elastalog").chmod(0o777)
    again = session._in_front_of(Path("/usr/bin/true"))
    assert not again.is_relative_to(tmp_path / "elastalog")
    assert stat.S_IMODE(again.parent.stat().st_mode) == 0o700


def test_folders_of_a_process_have_names_that_nobody_can_guess() -> None:
    first, second = folder_of_this_process(), folder_of_this_process()
    assert first != second
    assert stat.S_IMODE(first.stat().st_mode) == 0o700


def test_lines_of_the_shell_are_kept_for_their_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept = history_file()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.unlink()
    kept.symlink_to(tmp_path / "elsewhere")
    assert history_file() is None


def test_nothing_in_the_package_makes_names_in_the_folder_for_temporary_files() -> None:
    """`tempfile` may make folders with names of its own; a name of ours there can be taken first."""
    package = Path(module.__file__).parents[1]
    found = [path for path in package.rglob("*.py") if "gettempdir" in path.read_text(encoding="utf-8")]
    assert found == []
