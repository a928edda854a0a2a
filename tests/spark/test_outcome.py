"""What the driver makes of the results of tasks."""

from __future__ import annotations

import pickle

from elastalog.backends.spark.results import ChangesWritten, Failed, Fault, StateWritten, ValuesMade, Worked, outcome_of
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import MadeValues
from elastalog.backends.spark.word_files import WordFile

BY_FIRST = Routing(0, 2)


def test_files_belong_to_the_share_that_wrote_them() -> None:
    results = [
        Worked(0, 5, pickle.dumps("a")),
        StateWritten(0, "path", WordFile("/0.parquet", 3)),
        ChangesWritten(0, "path", WordFile("/0c.parquet", 2), heard=1),
        Worked(1, 7, pickle.dumps(None)),
        ValuesMade(1, MadeValues(("new",), b"")),
        ChangesWritten(1, "path", WordFile("/1c.parquet", 4), heard=4),
    ]
    found = outcome_of(results, {"path": BY_FIRST, "far": BY_FIRST})
    path, far = found.written["path"], found.written["far"]
    assert (found.derivations, found.returned, found.faults) == (12, ["a", None], set())
    assert path.states == (WordFile("/0.parquet", 3, BY_FIRST, 0),)
    assert path.changes == (WordFile("/0c.parquet", 2, BY_FIRST, 0), WordFile("/1c.parquet", 4, BY_FIRST, 1))
    assert path.heard == 5
    assert path.paths == {"/0.parquet", "/0c.parquet", "/1c.parquet"}
    assert (far.states, far.changes, far.heard) == ((), (), 0)


def test_every_fault_is_known() -> None:
    results = [Failed(0, Fault.ERROR), Worked(1, 3), Failed(2, Fault.OVER_BUDGET), Failed(3, Fault.ERROR)]
    assert outcome_of(results, {}).faults == {Fault.ERROR, Fault.OVER_BUDGET}
