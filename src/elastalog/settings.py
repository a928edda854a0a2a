"""The thresholds that choose between mechanisms, each with a name, in one place.

They never affect answers, only costs, and which repairs and which failing derivations are considered. The defaults were
measured; tests run programs with each of them at its extremes (`tests/forcing.py`). The environment variable
`ELASTALOG_SETTINGS="replan_slack=0,compact_from=1"` sets some for a whole process.
"""

from __future__ import annotations

import os


class Settings:
    """Defaults are attributes of the class, and at first of the instance, where they are found more quickly."""

    # Rounds of a bootstrap
    share_plans_up_to: int = 1024
    """Size of relations up to which plans for similar sizes are reused, also by other sessions of a program."""
    replan_growth: int = 4
    """Growth of a recursive stratum after which its joins are planned again."""
    replan_slack: int = 1_000
    """Facts that a stratum may gain beyond that before it is planned again."""
    dominated_kept: int = 1_024
    """Dominated facts that may stay among the rows of a relation before it is compacted."""

    # Relations and indexes
    compact_from: int = 4_096
    """Rows of deleted facts from which a relation consisting mostly of them is compacted."""
    first_rows: int = 64
    """Initial capacity of a relation, in rows."""
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
    """Bytes from which an array has a memory mapping of its own, which grows in place."""
    few_shifted: int = 64
    """Initial capacity, in facts, of the undo log."""
    first_changed_words: int = 1_024
    """Initial capacity of the list of changed ids."""
    changed_words_kept: int = 1 << 16
    """Changed ids up to which room is kept for those of later updates: longer lists belong to their update alone."""
    most_changed_words: int = (1 << 31) - 1
    """Changed ids beyond which they are not put into one list, since places in it would be too large for ids."""
    spare_counts: int = 64
    """Spare capacity for counts by level."""
    few_rows_compared: int = 32
    """Rows up to which sets of rows are compared in Python."""
    long_work: float = 10.0
    """Seconds after which work is logged that has not come to an end, with the rules that may be the reason."""

    # Updates
    work_between_checks: int = 1 << 17
    """Rows that the machine processes between two checks of the limits: a few milliseconds."""
    first_changes: int = 4_096
    """Initial capacity of an update, in changed facts."""
    fork_index_share: int = 8
    """An alternative plan may need an index of its own on relations that are at least this many times smaller than the
    stratum."""
    fork_fanout: float = 4.0
    """Matches of a probe from which an alternative plan is considered."""
    enumerate_from: int = 1 << 16
    """The least number of rows that enumerating a rule is assumed to take while its cost is unknown."""
    rows_a_fact: int = 4
    """Rows that it is then assumed to take for each fact of its smallest relation."""
    backward_limit: int = 1 << 18
    """Rows of backward search, rule by rule, after which the rule is enumerated instead."""
    backward_chunk: int = 4_096
    """Facts in one step of a backward search."""
    few_looked_ahead: int = 64
    """Facts up to which look-ahead lists are kept unchanged."""
    merging_attempts: int = 8
    """Attempts to maintain an equivalence within its own recursion before its stratum is recomputed."""
    separation_least: int = 1 << 12
    """Members of classes that may be examined to see into which parts classes fall."""
    separation_share: int = 16
    """Beyond that, one in this many pairs may be examined."""
    bfc_plain_after: int = 16
    """Rounds of B/F^c after which the machine takes over the plain ones."""
    least_budget: int = 2_000
    """Derivations that every update may make before its cost is compared with that of a bootstrap."""
    many_small_updates: int = 64
    """Updates below that budget after which their cost is considered known."""
    small_update_sample: int = 8
    """From then on one in this many is measured, because measuring a small update would slow it down."""

    # Questions and groups
    few_values: int = 8
    """Values of an argument up to which a question is restricted to each of them."""
    most_values: int = 10_000
    """The most values in a restricted question."""
    group_attempts: int = 4
    """Attempts to find the groups that a rule needs before all are explored."""
    most_idle_groups: int = 1_000
    """Groups that are kept although no rule needs them any more."""

    # Why a fact is absent
    lookups_of_a_rule: int = 2_000
    """Look-ups that the search for failing derivations by one rule may make."""
    facts_of_an_atom: int = 200
    """Facts that it tries for one atom."""
    ranked_a_shown: int = 10
    """How many times more failing derivations are ranked than shown."""

    # Searches for what to change
    few_elements: int = 5_000
    """Elements of an update, or explicit facts, up to which all that varies is found before anything is tried."""
    first_share: float = 0.25
    """The most time, as a part, of a search from an unwanted fact, where explicit facts are that few, before all of
    them are searched."""
    few_debugged_facts: int = 2_048
    """Facts of a relation up to which a derivation graph has all of their derivations, asked for at once."""
    bracket_derivations: int = 20_000_000
    """Derivations that a trial may cost by which it is found what varies."""
    graph_derivations: int = 3_000_000
    """Derivations of a graph beyond which it is given up."""
    graph_trials: int = 4
    """States that could be tried in the time that a derivation graph may take."""
    choices_before_graph: int = 8
    """Choices that are tried before a derivation graph is built, or stated in the 0/1 program."""
    choices_before_all: int = 200
    """Choices that are tried from an unwanted fact before all of few explicit facts are searched."""
    stated_derivations: int = 100_000
    """Derivations that are stated at once; of a larger graph only the proofs that matter are, as they are met."""
    conditions_at_once: int = 60
    """Conditions that are looked for before the next choice."""
    few_switched_facts: int = 500
    """Explicit facts of a relation that are all made switches, where it matters which of them rules negate."""
    members_proved: int = 1_000
    """Members of an aggregate that are proved each; of more, whatever they may depend on keeps the result."""
    trial_derivations: int = 1_000_000
    """Derivations that a trial may cost in part of the program, before the whole is tried instead."""
    first_trial_derivations: int = 20_000
    """Derivations that the trial of a choice may cost while there may be others as good; ten times as many when each
    of those has cost more."""
    dear_switches: int = 12
    """Switches of choices that cost more, before more is allowed."""
    state_seconds: float = 1.0
    """What a state, and a derivation graph, may take however little time is given."""
    state_share: float = 0.1
    """The part of the time that a state may take: several may have no end."""
    state_seconds_a_fact: float = 2e-5
    """Seconds for each fact beyond which a state is taken to have no end, even if that is a smaller part."""
    reserved_share: float = 0.3
    """The part of the time that is kept for delta debugging."""

    # Candidates for repairs
    epochs_of_candidates: int = 20
    """For how many epochs a deleted fact remains a candidate that repairs may insert; others are candidates if
    named."""
    facts_examined: int = 200
    """The most absent facts to ask why not of, and facts of one update, or in the way of one negation, to take as
    candidates."""
    derivations_examined: int = 40
    """Failing derivations of each of these that are looked at, the nearest first."""
    leaves_examined: int = 1_000
    """Derivations around a fact that is in the way, to find the explicit facts it rests on."""
    rounds_of_why_not: int = 3
    """How many times it is asked why not where all candidates so far are inserted: each goes a step further."""
    combinations_tried: int = 200
    """Facts that a pattern among candidates stands for, made of values that are there: the nearest of each column."""
    rows_compared: int = 10_000
    """Rows of a relation that show what is usual in it; of a longer one, any text is taken for usual."""
    likeliest_candidates: int = 8
    """Candidates that are tried before all of them: with others rules may not terminate."""
    repairs_compared: int = 10
    """The most repairs of one size that are looked for, so that their side effects are compared."""
    search_seconds: float = 2.0
    """The least time for a search among candidates that the user did not give, for comparing side effects, and for each
    state in which it is asked why not."""
    search_trials: int = 10
    """Such a search may take this many times as long as those states took."""

    # Threads
    share_loading_from: int = 8_000
    """Explicit facts of several relations from which several threads divide the relations among them."""
    divide_index_from: int = 4_096
    """Rows to be added to one index from which several threads divide its keys among them."""
    divide_table_from: int = 1 << 17
    """Rows from which several threads fill a set table."""
    thread_gain: float = 0.65
    """Shared rounds are faster by the number of threads to this power: measured with 2 to 16."""
    update_thread_gain: float = 0.4
    """The same for shared variants of updates, whose rounds are opened and closed by one thread."""
    share_round_from: int = 60_000
    """Rows that a round is expected to look at from which several threads share it, and prepare to."""
    share_update_from: int = 1 << 15
    """The same for a variant of an update, and the facts that it starts from."""
    shared_starts: int = 1 << 17
    """Facts that a variant of an update starts from in one step, where threads can share them."""
    least_shared_room: int = 1 << 16
    """Rows of capacity that a relation gets in one step when several threads insert into it."""
    least_shared_growth: int = 1 << 14
    """Rows from which such a relation grows with all threads taking part."""
    machine_share_from: int = 12_000
    """Rows of a further round in a stratum in which a round has been shared."""
    machine_work_of_share: int = 1 << 12
    """The least number of rows that a morsel of a round is expected to look at."""
    machine_least_share: int = 16
    """The least number of rows that a morsel starts from."""

    # Values and files
    few_texts: int = 1 << 16
    """Texts up to which the interner is a Python dictionary."""
    few_rows: int = 32
    """Rows up to which facts are encoded one by one."""
    few_wide: int = 24
    """Numbers beyond 30 bits up to which they are interned one by one."""
    pairs_at_once: int = 1 << 20
    """Pairs of an equivalence that are expanded in one step."""
    read_in_threads_from: int = 1 << 18
    """Bytes of fact files from which several threads read them."""
    rows_of_a_piece: int = 1 << 19
    """Rows of a table that are encoded in one step."""
    bytes_of_a_block: int = 1 << 20
    """Bytes of a text file that are read in one step."""
    write_in_threads_from: int = 1 << 17
    """Rows from which several threads write a file."""
    rows_written_at_once: int = 1 << 18
    """Rows that are written in one step."""

    # A device
    device_first_look: int = 20_000
    """Facts of a stratum after which the kernel first considers handing it over to a device."""
    device_look: float = 0.05
    """Seconds between considering it again."""
    device_gain: float = 1.5
    """How many times faster the rest must be on the device: both times are estimates."""
    device_least_rest: float = 0.1
    """Seconds that the rest must take to be worth considering."""
    device_least_found: int = 500_000
    """Facts that a stratum must have found: with fewer, the time so far says little about the rest."""
    device_at_once_from: int = 200_000
    """Facts that a stratum must read or hold to go to the device from the start: for that many, a wrong choice costs
    little compared with reading them."""
    device_at_once_wait: float = 0.3
    """Seconds to wait in that case for a device that is starting."""
    device_growth: float = 4.0
    """How many facts must follow from one in a round for a stratum that reads fewer to go there as well."""
    device_most_variants: int = 16
    """The most variants of rules in a round for that: each costs launches."""
    device_longest_wait: float = 0.1
    """Seconds to wait for a device that has nearly started; longer if another round here takes twice that."""
    device_ebb: float = 0.5
    """A stratum is ending when its rounds find less and less, below this part of the largest one."""
    device_start_part: float = 0.3
    """Part of the start-up time of a device after which a stratum has taken long enough to start one."""
    device_start_from: int = 90_000
    """Facts that a stratum must have found by then."""
    device_start_ahead: int = 14_000
    """Facts about to be read from which a device is started while reading."""
    device_start_cores: int = 4
    """Processors from which starting a device takes nothing away from the kernel."""
    device_from: int = 30_000
    """Facts that a stratum must read or hold to be worth the transfer, where the engine chooses and the kernel cannot
    begin it: aggregates, and strata with global levels or `.limitsize`."""
    device_from_unstarted: int = 1_000_000
    """The same where the device has not been started yet."""
    device_asked_from: int = 5_000
    """The same where the user asks for the device: below it, unless facts multiply, the kernel takes no longer than a
    few launches."""
    device_once_from: int = 100_000
    """Facts of a stratum without recursion, which reads them once, to be worth the transfer."""
    device_patience: int = 4
    """The least number of small rounds in a row after which the kernel takes over from the device."""

    # Spark
    spark_least_rows: int = 100_000
    """Rows that a stratum reads from which it may be evaluated in tasks."""
    spark_few_texts: int = 10_000
    """Texts up to which tasks are sent all of them."""
    spark_few_filed: int = 10_000
    """Changed facts up to which files of facts are not rewritten."""
    spark_skew_from: int = 1_000
    """Facts with the same value from which they are spread over several tasks."""

    def __init__(self) -> None:
        vars(self).update((name, getattr(Settings, name)) for name in Settings.__annotations__)
        for given in filter(None, os.environ.get("ELASTALOG_SETTINGS", "").split(",")):
            name, _, value = given.partition("=")
            if not hasattr(Settings, name):
                raise ValueError(f"ELASTALOG_SETTINGS: there is no setting `{name}`")
            setattr(self, name, type(getattr(Settings, name))(value))


SETTINGS = Settings()
