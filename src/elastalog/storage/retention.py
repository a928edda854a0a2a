"""How far back a store can go: which snapshots and journals a manifest keeps."""

from __future__ import annotations

from dataclasses import replace

from elastalog.storage.manifest import JournalFile, Manifest, Snapshot

MOST_SNAPSHOTS = 8
"""Beyond this, some in the middle go; the epochs around them are then read from an older snapshot and more of the
journal."""

_LEAST_HISTORY = 64 << 20


def retained(manifest: Manifest) -> Manifest:
    """The manifest without what is older than its options ask for, or takes more room than they allow."""
    options = manifest.options
    latest = manifest.snapshots[-1]
    snapshots = list(manifest.snapshots)
    while len(snapshots) > 1 and snapshots[1].epoch <= latest.epoch - options.retention:
        del snapshots[0]
    while len(snapshots) > MOST_SNAPSHOTS:
        gaps = [snapshots[i + 1].epoch - snapshots[i - 1].epoch for i in range(1, len(snapshots) - 1)]
        del snapshots[gaps.index(min(gaps)) + 1]
    allowed = max(_LEAST_HISTORY, int(options.history_share * latest.bytes))
    while len(snapshots) > 1 and _history_bytes(manifest, snapshots) > allowed:
        del snapshots[0]
    return replace(manifest, snapshots=tuple(snapshots), journals=_journals_after(manifest, snapshots[0].epoch))


def _history_bytes(manifest: Manifest, snapshots: list[Snapshot]) -> int:
    """What is kept for the sake of earlier epochs only."""
    present = {file.name for file in snapshots[-1].relations.values()}
    past = {file.name: file.bytes for s in snapshots[:-1] for file in s.relations.values() if file.name not in present}
    journals = _journals_after(manifest, snapshots[0].epoch)
    return sum(past.values()) + sum(journal.sealed.bytes for journal in journals if journal.sealed is not None)


def _journals_after(manifest: Manifest, epoch: int) -> tuple[JournalFile, ...]:
    """Those that hold epochs after one, and the last."""
    journals = manifest.journals
    ends = [following.epoch for following in journals[1:]]
    return (*(journal for journal, end in zip(journals, ends, strict=False) if end > epoch), journals[-1])
