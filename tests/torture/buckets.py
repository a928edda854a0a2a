# ruff: noqa: PT017 - what is refused must be refused for the right reason
"""A store in a bucket whose server answers late, with errors, or after it has carried out what it says has failed:
epoch n - 1 or n, never a mixture, and nothing lost that was told."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from random import Random
from unittest.mock import patch

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.remote import Patience
from elastalog.storage.objects.lease import Lease
from tests.object_server import Trouble
from tests.object_store import Bucket, bucket_on_this_machine
from tests.storage.expecting import EXPECTED
from tests.storage.scripted import FACTS, LAST, PROGRAM, go_on, state_of

WRITERS = 8
"""Most writers of one life."""

_TROUBLES = (("503",), ("late 503",), ("500", "late 500", "503", "late 503"), ("429",))
_MAY_FAIL = {"E0804", "E0808", "E0809", "E0875", "E0877", "E0878"}
"""What a writer may be told: another has not released it, nothing was written, look at it anew, the server is away,
somebody else has come."""


@cache
def _bucket() -> Bucket:
    stack = ExitStack()
    atexit.register(stack.close)
    bucket = stack.enter_context(bucket_on_this_machine())
    bucket.clear()
    return bucket


def _trouble(random: Random) -> Trouble:
    only = random.choice(("", "PUT", "GET", "HEAD", "DELETE"))
    return Trouble(random.choice(_TROUBLES), only=only, share=random.choice((0.03, 0.1, 0.3, 0.6)))


def buckets(seed: int) -> int:
    """Writers come one after the other, each in trouble of its own, until all updates are in the store."""
    random, bucket = Random(seed), _bucket()
    address = bucket.address(f"trial-{seed}")
    with patch.multiple(Patience, first_pause=0.001, attempts=3), patch.object(Lease, "seconds", 0.3):
        elastalog.open(PROGRAM, FACTS, store=elastalog.Store(address, retention=3)).close()
        told, met = 1, 0
        for turn in range(WRITERS):
            with bucket.troubled(Trouble() if turn == WRITERS - 1 else _trouble(random)):
                told = max(told, _written(address))
                met += sum(bucket.met().values())
            with elastalog.open(store=elastalog.Store(address, read_only=True)) as reader:
                assert reader.epoch >= told, (reader.epoch, told)
                assert state_of(reader) == EXPECTED[reader.epoch]
                told = reader.epoch
            if told == LAST:
                break
        assert told == LAST
    return met


def _written(address: str) -> int:
    """Goes on with the updates. Returns the last epoch that was told."""
    told = 0

    def tell(epoch: int) -> None:
        nonlocal told
        told = epoch

    try:
        with elastalog.open(store=address) as session:
            object.__setattr__(session._history.store.manifest.options, "journal_epochs", 2)
            assert state_of(session) == EXPECTED[session.epoch]
            tell(session.epoch)
            go_on(session, tell)
    except ElastalogError as error:
        assert error.diagnostics[0].code in _MAY_FAIL, error
    return told
