"""The thresholds that choose between mechanisms, each under a name, in one place.

Answers never depend on them, only costs do, and which repairs are thought of: the defaults were measured, and tests run
programs with each at its extremes (`tests/forcing.py`). `ELASTALOG_SETTINGS="replan_slack=0,compact_from=1"` in the
environment sets some for a whole process.
"""

from __future__ import annotations

import os


class Settings:
    """Defaults are attributes of the class; what is set is an attribute of the instance."""

    # Rounds of a bootstrap
    share_plans_up_to: int = 1024
    """The size of relations up to which plans for like sizes are used again, also by other sessions of a program."""
    replan_growth: int = 4
    """Growth of a recursive stratum after which its joins are planned again."""
    replan_slack: int = 1_000
    """Facts that a stratum may gain beyond that before it is planned again."""
    dominated_kept: int = 1_024
    """Dominated facts that may stay among the rows of a relation before it is compacted."""

    # Relations and indexes
    compact_from: int = 4_096
    """Rows of deleted facts from which a relation that consists mostly of them is compacted."""
    first_rows: int = 64
    """Rows for which a new relation has room."""
    many_rows: int = 1 << 20
    """Rows from which a relation grows in small steps, in place."""
    direct_keys_factor: int = 8
    """An index on one column addresses ids directly if the largest is below this many times the rows: up to twice the
    memory of a hash table, but neighbours are found together."""
    direct_keys_anyway: int = 1 << 12
    """Ids below this are addressed directly however few the rows."""
    pack_from: int = 1 << 10
    """Rows from which a new index is packed: counted first, then laid out without gaps."""
    many_slots: int = 1_000_000
    """Slots from which a direct index grows in small steps."""
    map_from: int = 1 << 22
    """Bytes from which an array is a mapping of its own, which grows in place."""
    few_shifted: int = 64
    """Facts for which the way back to the epoch before has room at first."""
    first_changed_words: int = 1_024
    """Ids for which the list of changes has room at first."""
    spare_counts: int = 64
    """Counts by level for which there is room in advance."""
    few_rows_compared: int = 32
    """Rows up to which sets of rows are compared in Python."""

    # Updates
    work_between_checks: int = 1 << 17
    """Rows that the machine looks at between two looks at limits: a few milliseconds."""
    first_changes: int = 4_096
    """Changed facts for which an update has room at first."""
    fork_index_share: int = 8
    """An alternative plan may need an index of its own on relations that are this many times smaller than the
    stratum."""
    fork_fanout: float = 4.0
    """Matches of a probe from which an alternative plan is looked for."""
    enumerate_from: int = 1 << 16
    """Rows that it should take at least to enumerate a rule, as long as it is not known."""
    rows_a_fact: int = 4
    """Rows that it should take for each fact of its smallest relation."""
    set_machine_after: int = 16
    """Rounds of a propagation by sets after which the rest goes to the machine."""
    backward_limit: int = 1 << 18
    """Rows of backward search, rule by rule, after which the rule is enumerated instead."""
    backward_chunk: int = 4_096
    """Facts that are searched for backwards at a time."""
    few_looked_ahead: int = 64
    """Facts up to which look-ahead lists are kept as they are."""
    merging_attempts: int = 8
    """Attempts to maintain an equivalence in its own recursion before its stratum is recomputed."""
    separation_least: int = 1 << 12
    """Members of classes that may be looked at to see into which parts classes fall."""
    separation_share: int = 16
    """One in this many pairs may be looked at beyond that."""
    bfc_plain_after: int = 16
    """Rounds of B/F^c after which plain ones go to the machine."""
    least_budget: int = 2_000
    """Derivations that every update may make before it is compared with a bootstrap."""
    many_small_updates: int = 64
    """Updates below that budget after which what they cost is known well enough."""
    small_update_sample: int = 8
    """One in this many is learnt from afterwards, since to learn takes time that a small update would notice."""

    # Questions and groups
    few_values: int = 8
    """Values of an argument up to which a question is restricted to each of them."""
    most_values: int = 10_000
    """Values that a restricted question may bring."""
    group_attempts: int = 4
    """Attempts to find the groups that a rule needs before all are explored."""
    most_idle_groups: int = 1_000
    """Groups that no rule needs any more and that are kept anyway."""
    few_debugged_facts: int = 2_048
    """Facts of a relation up to which a repair collects all of their derivations."""
    epochs_of_candidates: int = 20
    """How many epochs back a deleted fact is still among what repairs may insert; others are if they are named."""

    # Threads
    share_indexes_from: int = 8_000
    """Rows to be added to indexes from which several threads share them."""
    divide_index_from: int = 4_096
    """Rows to be added to one index from which several threads add those of some keys each."""
    divide_table_from: int = 1 << 17
    """Rows from which several threads fill a set table."""
    thread_gain: float = 0.65
    """The power of the number of threads by which rounds that they share are faster: as measured with 2 to 16."""
    update_thread_gain: float = 0.4
    """The like for variants of updates that they share: rounds are opened and closed by one."""
    share_round_from: int = 60_000
    """Rows that a round is expected to look at from which several threads share it, and what they need is made."""
    share_update_from: int = 1 << 15
    """The like for a variant of an update, and the facts that it starts at."""
    shared_starts: int = 1 << 17
    """Facts that a variant of an update starts at, at a time, where threads can share them."""
    least_shared_room: int = 1 << 16
    """Rows for which a relation that several threads insert into gets room at a time."""
    least_shared_growth: int = 1 << 14
    """Rows from which such a relation grows with all threads present."""
    machine_share_from: int = 12_000
    """The like for a stratum of which they have shared a round."""
    machine_work_of_share: int = 1 << 12
    """Rows that a share of a round is expected to look at, at least."""
    machine_least_share: int = 16
    """Rows that a share starts at, at least."""

    # Values and files
    few_texts: int = 1 << 16
    """Texts up to which the interner is a dictionary of Python."""
    few_rows: int = 32
    """Rows up to which facts are encoded one by one."""
    few_wide: int = 24
    """Numbers beyond 30 bits up to which they are interned one by one."""
    pairs_at_once: int = 1 << 20
    """Pairs of an equivalence that are written out at a time."""
    read_in_threads_from: int = 1 << 18
    """Bytes of fact files from which several threads read them."""
    rows_of_a_piece: int = 1 << 19
    """Rows of a table that are encoded at a time."""
    bytes_of_a_block: int = 1 << 20
    """Bytes of a text file that are read at a time."""
    write_in_threads_from: int = 1 << 17
    """Rows from which several threads write a file."""
    rows_written_at_once: int = 1 << 18
    """Rows that are written at a time."""

    # A device
    device_first_look: int = 20_000
    """Facts of a stratum after which the kernel asks for the first time whether a device shall go on with it."""
    device_look: float = 0.05
    """Seconds after which it asks again."""
    device_gain: float = 1.5
    """How many times faster the rest has to be there: both sides are guesses."""
    device_least_rest: float = 0.1
    """Seconds that have to be left: less is not worth any thought."""
    device_least_found: int = 500_000
    """Facts that a stratum must have found: before, what they took says little of the rest."""
    device_at_once_from: int = 200_000
    """Facts that a stratum must read or hold to go there before it is begun here: for that many, a wrong choice costs
    little beside reading them."""
    device_at_once_wait: float = 0.3
    """Seconds that are waited then for a device that is being started."""
    device_growth: float = 4.0
    """How many facts must follow from one in a round, so that a stratum which reads fewer goes there as well."""
    device_most_variants: int = 16
    """Variants of rules in a round up to which it may: each costs launches."""
    device_longest_wait: float = 0.1
    """Seconds that are waited for a device that has nearly been started; longer if another round here takes twice."""
    device_ebb: float = 0.5
    """Rounds that find less than this part of what the largest has found, and ever less, come to an end."""
    device_start_part: float = 0.3
    """Part of the time of a start after which a stratum has taken long enough for one."""
    device_start_from: int = 90_000
    """Facts that a stratum must have found by then."""
    device_start_ahead: int = 14_000
    """Facts that are going to be read from which a device is started beside that."""
    device_start_cores: int = 4
    """Processors of a machine on which a start takes nothing away from the kernel."""
    device_from: int = 30_000
    """Facts that a stratum must read or hold to be worth the transfer, where the choice is ours, and the kernel cannot
    begin with it: aggregates, and strata with global levels or `.limitsize`."""
    device_from_unstarted: int = 1_000_000
    """Such facts where the device has not been started yet."""
    device_asked_from: int = 5_000
    """Where the user wants it there: the kernel is done with fewer in the time of a few launches, unless they grow."""
    device_once_from: int = 100_000
    """Facts of a stratum without recursion, which looks at them once, to be worth the transfer."""
    device_patience: int = 4
    """Small rounds in a row there after which the kernel goes on, at least."""

    # Spark
    spark_least_rows: int = 100_000
    """Rows of what a stratum reads from which it may be evaluated in tasks."""
    spark_few_texts: int = 10_000
    """Texts up to which tasks are given all of them."""
    spark_few_filed: int = 10_000
    """Changed facts up to which files of facts are not written again."""
    spark_skew_from: int = 1_000
    """Facts with one value from which they are spread over several tasks."""

    def __init__(self) -> None:
        for given in filter(None, os.environ.get("ELASTALOG_SETTINGS", "").split(",")):
            name, _, value = given.partition("=")
            if not hasattr(Settings, name):
                raise ValueError(f"ELASTALOG_SETTINGS: there is no setting `{name}`")
            setattr(self, name, type(getattr(Settings, name))(value))


SETTINGS = Settings()
