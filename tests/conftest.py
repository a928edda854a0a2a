"""Hypothesis profiles: `ci` is the one of every run (see `pyproject.toml`), `long` is for nights. A bucket of a server
that speaks S3, for all tests that meet at an address."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.object_store import Bucket, bucket_on_this_machine

# Tests start hundreds of processes, which would compile our modules anew, one after the other.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell ignores Ctrl-C for what it starts in the background; tests send it to themselves and to what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TOLD = {
    # What random updates insert and delete, rules derive too.
    "E0625": "debugging engine gpu kernel provenance rules session spark storage strategies torture",
    # Recursion that only its facts bound.
    "E0414": "analysis cli/test_termination engine gpu kernel provenance spark torture",
    # Relations that a test leaves empty.
    "E0510": "engine examples session/test_queries session/test_repair",
    # Rows and headers that are bad on purpose.
    "E05": "pipeline rdf relations session/test_bad_rows_of_updates session/test_interface spark torture "
    "web/api/test_readers",
    # Questions about values that no fact mentions, and about texts that are no dates.
    "E0618": "debugging provenance rdf relations session/test_public_names session/test_repair "
    "session/test_shared_programs storage/test_history",
    "E0621": "dialect provenance/test_absence",
    # Updates that are dropped.
    "E0626": "cli/test_souffle_options rules session/test_bad_rows_of_updates strategies",
}
"""Warnings that tests are told and do not ask about, by the folders and modules that provoke them. They are not among
those that a run ends with; a filter would hide them from commands, whose output tests read."""

DEAR = ("described", "object_server", "programs", "wheel")
"""Fixtures that take seconds to make: servers, a wheel. One test process has them, with all tests that use them."""

MEMORY = "/dev/shm"
"""Where systems have a file system in memory."""

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("long", max_examples=5000, deadline=None)


def pytest_configure() -> None:
    """Folders of tests are in memory where there is enough of it, and programs may lie there: stores flush every epoch
    to the disk, for which they wait longer than for all else."""
    may_be_used = os.access(MEMORY, os.W_OK) and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if may_be_used and shutil.disk_usage(MEMORY).free > 4 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of a group, or of a fixture that is one, have it at the end of their ids, by which xdist keeps them in one
    process. It sets an attribute for that which pytest has not looked at since 9.2; `tests/test_groups.py` says whether
    this does."""
    if getattr(config.option, "loadgroup", False):
        for item in items:
            dear = [name for name in DEAR if name in getattr(item, "fixturenames", ())]
            if dear and item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group(dear[0]))
            group = item.get_closest_marker("xdist_group")
            if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
                item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """After each test, xdist counts what is left of all that its process was ever given, which for ten thousand takes a
    quarter of a minute: what is done is forgotten."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Forgetful(LoadGroupScheduling):
        def _reschedule(self, node: Any) -> None:
            given = self.assigned_work[node]
            for name in [name for name, tests in given.items() if all(tests.values())]:
                del given[name]
            super()._reschedule(node)

    return Forgetful(config, log)


def pytest_collectstart() -> None:
    """Collecting makes no garbage to speak of; a quarter of its time would go to the search for it."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests, and the modules that they import, are there to the end: no search for garbage looks at them
    again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Modules that count what is left of them at the end may find it. Warnings stay that nobody expects."""
    gc.unfreeze()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and "warnings" in reporter.stats:
        reporter.stats["warnings"] = [told for told in reporter.stats["warnings"] if not is_expected(told)]


def is_expected(warning: Any) -> bool:
    """Whether a warning that was recorded is one of `TOLD`."""
    return any(
        f"warning[{code}" in warning.message
        and (warning.nodeid or "").startswith(tuple(f"tests/{place}{end}" for place in places.split() for end in "/."))
        for code, places in TOLD.items()
    )


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is collected meanwhile. A signal that comes during a collection is handled in the function that
    hypothesis has called after each, and an exception there is ignored: nothing would be interrupted."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def impatient() -> Iterator[None]:
    """Repairs give a state in which rules have no end up after a fifth of a second, where the other states take a
    hundredth, and look among candidates of their own for half a second."""
    from tests.forcing import forced

    with forced(search_seconds=0.5, state_seconds=0.2):
        yield


@pytest.fixture(scope="session")
def compiled() -> None:
    """The kernel is, so that no test is told of its compilation."""
    from elastalog.jit.building import build

    build()


@pytest.fixture(scope="session")
def object_server() -> Iterator[Bucket]:
    with bucket_on_this_machine() as made:
        yield made


@pytest.fixture(scope="module")
def bucket(object_server: Bucket) -> Bucket:
    """An empty bucket."""
    object_server.clear()
    return object_server
