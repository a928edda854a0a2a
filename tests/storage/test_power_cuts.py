"""A power failure at any instant: what was told is there, whatever became of what was not flushed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.storage.journal import START, FrameDamaged, frame, read_frames
from tests.failpoints import PURPOSES, purpose
from tests.refusals import refused
from tests.storage.power import PAGE, Disk, Flushed, Named, RecordingDisk, Told, Wrote, recorded
from tests.storage.scripted import create
from tests.torture.power import power_cuts


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.long)])  # 1 is one of `tests.torture`
def test_every_image_opens_with_what_was_told(seed: int) -> None:
    assert power_cuts(seed) > 200


class ForgetfulDisk(RecordingDisk):
    """Does not flush what is written for one purpose."""

    forgotten = ""

    def _fsync(self, descriptor: int) -> None:
        if purpose(descriptor) != self.forgotten:
            super()._fsync(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize("left_out", sorted({*PURPOSES, "folder"} - {"format"}))
def test_a_flush_that_is_left_out_is_noticed(left_out: str) -> None:
    class Disk(ForgetfulDisk):
        forgotten = left_out

    with pytest.raises((AssertionError, ElastalogError)):
        sum(power_cuts(seed, Disk) for seed in range(1, 4))


def test_the_folders_above_a_new_store_are_there_too(tmp_path: Path) -> None:
    class Disk(RecordingDisk):
        def make_folder(self, path: Path) -> None:
            path.mkdir(parents=True, exist_ok=True)
            for folder in reversed([path, *path.parents]):
                if folder.is_relative_to(self.root) and folder != self.root:
                    self.events.append(Named(self._name(folder), -1))

    with pytest.raises((AssertionError, ElastalogError)):
        power_cuts(1, Disk)


def test_a_copy_is_on_the_disk_when_it_is_said_to_be(tmp_path: Path) -> None:
    with create(tmp_path / "store") as session, recorded(tmp_path) as disk:
        session.backup(tmp_path / "far" / "copy")
        found = after(disk.events).without_pending()
        assert "far/copy/CURRENT" in found


def after(events: list[Wrote | Named | Flushed | Told]) -> Disk:
    disk = Disk()
    for event in events:
        disk.take(event)
    return disk


def test_the_disk_loses_what_was_not_flushed() -> None:
    written: list[Wrote | Named | Flushed | Told] = [Named("f", 0), Wrote(0, 0, b"abc")]
    assert after(written).without_pending() == {}
    assert after([*written, Flushed(0)]).without_pending() == {}
    assert after([*written, Flushed("")]).without_pending() == {"f": b""}
    flushed = [*written, Flushed(0), Flushed("")]
    assert after(flushed).without_pending() == {"f": b"abc"}
    moved = after([*flushed, Named("g", 0, "f"), Wrote(0, 3, b"de")])
    assert moved.without_pending() == {"f": b"abc"}
    assert moved.with_pending() == {"g": b"abcde"}
    torn = {next(iter(moved.torn(Random(seed)).items())) for seed in range(600)}
    assert torn == {(name, b"abc" + end) for name in "fg" for end in (b"", b"d", b"de", b"\0\0")}


def test_folders_that_are_lost_take_their_files_along() -> None:
    events: list[Wrote | Named | Flushed | Told] = [Named("a", -1), Named("a/f", 0), Flushed("a"), Flushed(0)]
    assert after(events).without_pending() == {}
    assert after([*events, Flushed("")]).without_pending() == {"a": None, "a/f": b""}


def test_a_page_of_zeros_is_an_unfinished_write_only_at_the_end() -> None:
    first, digest = frame(b"first", START)
    second, digest = frame(bytes(range(256)) * 7, digest)
    third, _ = frame(b"third", digest)
    whole = first + second + third
    assert [found.payload[:5] for found in read_frames(whole)] == [b"first", bytes(range(5)), b"third"]
    torn = first + bytes(len(second))
    assert [found.payload for found in read_frames(torn)] == [b"first"]
    assert len(whole) < PAGE
    with pytest.raises(FrameDamaged):
        list(read_frames(torn + third))


def test_epochs_behind_a_page_of_zeros_are_not_given_up(tmp_path: Path) -> None:
    with create(tmp_path / "store", journal_epochs=100) as session:
        for number in range(3):
            session.apply({"label": [(number, Random(number).randbytes(9000).hex())]})
    (journal,) = (tmp_path / "store").glob("journal-*.log")
    data = bytearray(journal.read_bytes())
    assert len(data) > 3 * PAGE
    data[PAGE : 2 * PAGE] = bytes(PAGE)
    journal.write_bytes(data)
    with refused("E0805"):
        elastalog.open(store=tmp_path / "store")
