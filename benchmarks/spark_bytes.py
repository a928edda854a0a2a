"""What tasks give each other and write, in bytes a fact, by the number of tasks: `python -m benchmarks.spark_bytes`.

Tasks run in this process, in threads; bytes do not depend on where they run. The figures that docs/explanation/scale.md
reckons with.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import pytest

import elastalog
from benchmarks.spark_case import case_named
from elastalog.backends.spark.messages import Messages
from tests.spark.without_spark import tasks_in_this_process

SHARES = (2, 4, 8, 16)


def measure(name: str, shares: int) -> str:
    """A line of the table."""
    case = case_named(name, None)
    sent = {"bytes": 0, "rounds": 0}
    close = Messages.close

    def counted(self: Messages) -> None:
        close(self)
        sent["bytes"] += self.sent
        sent["rounds"] = max(sent["rounds"], self.rounds)

    with tempfile.TemporaryDirectory() as folder, tasks_in_this_process(Path(folder), shares) as session:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Messages, "close", counted)
            db = elastalog.open(case.program, case.facts(), engine="spark", spark=session)
        written = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        derived = len(db["path"])
        db.close()
    return (
        f"{name:<20}{shares:>6}{derived:>12,}{sent['rounds']:>8}"
        f"{sent['bytes'] / derived:>18.1f}{written / derived:>17.1f}"
    )


@click.command()
@click.argument("workloads", nargs=-1)
def main(workloads: tuple[str, ...]) -> None:
    """Prints a table."""
    print(f"{'workload':<20}{'tasks':>6}{'facts':>12}{'rounds':>8}{'exchanged, B/fact':>18}{'written, B/fact':>17}")
    for name in workloads or ("closure-random:20", "doubling:100"):
        for shares in SHARES:
            print(measure(name, shares), flush=True)


if __name__ == "__main__":
    main()
