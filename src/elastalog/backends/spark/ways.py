"""How tasks that exchange are run: all at the same time, over the network or through files, or one stage a round."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from elastalog.backends.spark.slots import shares_asked_for, slots
from elastalog.diagnostics.arguments import require_one_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("elastalog.placement")

SETTING = "spark.elastalog.exchange"
Way = Literal["network", "files", "stages"]
_WAYS: tuple[Way, ...] = ("network", "files", "stages")


@dataclass(slots=True)
class Ways:
    """Which way is gone in a session of Spark, told in the log when it is one stage a round."""

    spark: SparkSession
    _found: Way | None = None

    def way(self) -> Way:
        if self._found is None:
            self._found = self._chosen()
        return self._found

    def no_barrier(self, why: str) -> None:
        """Tasks could not be run together, so they are not, from now on."""
        self._found = "stages"
        log.info("tasks that exchange run one stage a round: %s", why)

    def _chosen(self) -> Way:
        wanted = self.spark.conf.get(SETTING, None) or "auto"
        require_one_of(SETTING, wanted, ("auto", *_WAYS))
        for way in _WAYS:
            if wanted == way:
                if way == "stages":
                    self.no_barrier("as asked")
                return way
        if (self.spark.conf.get("spark.dynamicAllocation.enabled", None) or "false").lower() == "true":
            self.no_barrier("dynamic allocation does not go together with Spark's barrier mode")
            return "stages"
        asked = shares_asked_for(self.spark)
        if asked is not None and asked > slots(self.spark):
            self.no_barrier(f"{asked} tasks are asked for, and there are {slots(self.spark)} slots")
            return "stages"
        is_one_machine = (self.spark.sparkContext.master or "").startswith("local")
        return "files" if is_one_machine else "network"
