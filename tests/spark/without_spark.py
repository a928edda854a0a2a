"""The backend of Spark with tasks that run in this process, one after the other or in threads: hundreds of random cases
in the time of one job. What tasks are given and give back is copied as Spark would."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elastalog.backends.spark import exchange, placement, strata
from elastalog.backends.spark.results import Result
from elastalog.backends.spark.task import run_shares
from elastalog.backends.watch import Watch
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at
from elastalog.pipeline.files.read import read_input


class Settings(dict[str, str]):
    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, default)


@contextmanager
def tasks_in_this_process(folder: Path | str, shares: int = 3, **settings: str) -> Iterator[Any]:
    """Within the block, sessions with `engine="spark"` and the session given evaluate in this process."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    conf = Settings(
        {
            "spark.elastalog.leastRows": "0",
            placement.SHARES_SETTING: str(shares),
            **settings,
        }
    )
    slots = SimpleNamespace(master=f"local[{shares}]", getConf=dict)
    spark = SimpleNamespace(conf=conf, sparkContext=slots, ran=[], attempts=[])
    numbers = itertools.count()

    def run_tasks(
        session: Any, work: Callable[[int], Result], shares: Sequence[int], watch: Watch, *,
        are_together: bool, check: Callable[[], None] = lambda: None, title: str = "",
    ) -> list[Result]:  # fmt: skip
        spark.ran.append(tuple(shares))
        buffer = io.BytesIO()
        cloudpickle.dump(partial(run_shares, work, tuple(shares)), buffer)
        attempt = next(numbers)

        def task(position: int) -> list[Result]:
            body = cloudpickle.loads(buffer.getvalue())
            try:
                found: list[Result] = cloudpickle.loads(cloudpickle.dumps(list(body(iter([position])))))
                return found
            except BaseException:
                # Spark would end the others.
                for path in spark.attempts:
                    files_at(path).remove_folder(path)
                raise

        spark.attempt = attempt
        with ThreadPoolExecutor(len(shares) if are_together else 1) as pool:
            futures = [pool.submit(task, position) for position in range(len(shares))]
        # The others fail only because one has failed.
        errors = sorted(filter(None, (f.exception() for f in futures)), key=lambda e: isinstance(e, RuntimeError))
        if errors:
            raise errors[0]
        check()
        return [result for future in futures for result in future.result()]

    def attempt_folder(spec: Any) -> str:
        made = inside(spec.folder, f"attempt-{spark.attempt}")
        files_at(made).make_folder(made)
        spark.attempts.append(made)
        return made

    def new_folder(session: Any, kind: str) -> str:
        made = inside(str(folder), f"{kind}-{next(numbers)}")
        files_at(made).make_folder(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata, "run_tasks", run_tasks)
        patch.setattr(exchange, "attempt_folder", attempt_folder)
        patch.setattr(exchange, "own_host", lambda: "127.0.0.1")
        patch.setattr("elastalog.pipeline.spark.workplace.new_folder", new_folder)
        # Sessions have names of their own for these, which must not become what is here when they are imported.
        patch.setattr("elastalog.pipeline.spark.for_sessions.spark_session", lambda: spark)
        patch.setattr("elastalog.pipeline.spark.session.spark_session", lambda: spark)
        for module in ("for_sessions.sources", "sources"):
            patch.setattr(
                f"elastalog.pipeline.spark.{module}.read_inputs",
                lambda session, relation, root, policy, into: read_input(relation, Path(root), policy),
            )
        yield spark
