"""Every threshold that chooses a mechanism, forced: the extremes of each setting, and drawings of many at once.

A list of the settings and of what covers them: those in `EXTREMES` are forced three by three in
`tests/engine/test_forced_settings.py`, and drawn at random by the torture kinds `forced` and `strata`; the others are
in `ELSEWHERE`, with the tests that set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random

from elastalog.settings import SETTINGS

ENOUGH = 1 << 40
"""More than any small program reaches."""

EXTREMES: Mapping[str, tuple[int | float, ...]] = {
    "share_plans_up_to": (0, 2, ENOUGH),
    "replan_growth": (0, 1, 2),
    "replan_slack": (0, 1, 10),
    "dominated_kept": (0, ENOUGH),
    "compact_from": (0, 1, 5, ENOUGH),
    "first_rows": (1, 3, 1000),
    "many_rows": (0, 8),
    "direct_keys_factor": (0, 50),
    "direct_keys_anyway": (0, 3, 1 << 16),
    "pack_from": (0, 1, 3, ENOUGH),
    "many_slots": (0, 16),
    "few_shifted": (1,),
    "first_changed_words": (1, 8),
    "changed_words_kept": (0, 20),
    "most_changed_words": (0, 16, 40),
    "spare_counts": (1, 2),
    "few_rows_compared": (0, 2),
    "work_between_checks": (1, 5, 60),
    "first_changes": (1, 2),
    "fork_index_share": (1, ENOUGH),
    "fork_fanout": (0.0, 1.0, 1e9),
    "enumerate_from": (0, 1, ENOUGH),
    "rows_a_fact": (0, ENOUGH),
    "backward_limit": (1, 20),
    "backward_chunk": (1, 3),
    "few_looked_ahead": (0, 1),
    "merging_attempts": (0, 1),
    "separation_least": (0, 1, ENOUGH),
    "separation_share": (1, ENOUGH),
    "bfc_plain_after": (0, 1, ENOUGH),
    "least_budget": (0, 3, ENOUGH),
    "many_small_updates": (0, ENOUGH),
    "small_update_sample": (1, 3),
    "group_attempts": (0, 1),
    "most_idle_groups": (0, 1),
    "share_loading_from": (0,),
    "divide_index_from": (1,),
    "divide_table_from": (1,),
    "share_round_from": (0,),
    "share_update_from": (0, 40),
    "shared_starts": (1, 3, 1 << 17),
    "least_shared_room": (1, 64),
    "least_shared_growth": (0, 1),
    "machine_share_from": (0, 1),
    "thread_gain": (0.0, 1.0),
    "update_thread_gain": (0.0, 1.0),
    "machine_work_of_share": (1,),
    "machine_least_share": (1,),
    "few_texts": (0, 3),
    "few_rows": (0, 2),
    "few_wide": (0, 1),
    "pairs_at_once": (1, 3),
}
"""Values of each that force the one mechanism or the other upon programs of a few facts."""

ELSEWHERE: Mapping[str, str] = {
    "map_from": "tests/kernel/test_lengthening.py (many sessions at once have too little address space)",
    "few_values": "tests/session/test_queries.py",
    "most_values": "tests/session/test_queries.py",
    "few_debugged_facts": "tests/debugging/test_collection.py",
    **dict.fromkeys(
        (
            "few_elements",
            "first_share",
            "bracket_derivations",
            "graph_derivations",
            "graph_trials",
            "choices_before_graph",
            "choices_before_all",
            "stated_derivations",
            "conditions_at_once",
            "few_switched_facts",
            "members_proved",
            "trial_derivations",
            "first_trial_derivations",
            "dear_switches",
            "state_seconds",
            "state_share",
            "state_seconds_a_fact",
            "reserved_share",
        ),
        "tests/debugging/test_propositional.py",
    ),
    **dict.fromkeys(
        (
            "lookups_of_a_rule",
            "facts_of_an_atom",
            "ranked_a_shown",
            "epochs_of_candidates",
            "facts_examined",
            "derivations_examined",
            "leaves_examined",
            "rounds_of_why_not",
            "combinations_tried",
            "rows_compared",
            "likeliest_candidates",
            "repairs_compared",
            "search_seconds",
            "search_trials",
        ),
        "tests/session/test_repair.py",
    ),
    "long_work": "tests/analysis/test_strata.py",
    "read_in_threads_from": "tests/pipeline/test_plain_lines.py",
    "rows_of_a_piece": "tests/pipeline/test_limits.py",
    "bytes_of_a_block": "tests/pipeline/test_plain_lines.py",
    "write_in_threads_from": "tests/pipeline/test_write_lines.py",
    "rows_written_at_once": "tests/pipeline/test_write.py",
    **dict.fromkeys(
        (
            "device_first_look",
            "device_look",
            "device_gain",
            "device_least_rest",
            "device_least_found",
            "device_longest_wait",
            "device_at_once_wait",
            "device_growth",
            "device_ebb",
            "device_start_part",
            "device_start_from",
            "device_start_ahead",
            "device_start_cores",
        ),
        "tests/gpu/test_handover.py",
    ),
    **dict.fromkeys(
        (
            "device_from",
            "device_from_unstarted",
            "device_at_once_from",
            "device_most_variants",
            "device_asked_from",
            "device_once_from",
        ),
        "tests/gpu/test_place.py",
    ),
    "device_patience": "tests/gpu/test_engine.py",
    "spark_least_rows": "tests/spark (spark.elastalog.leastRows)",
    "spark_few_texts": "tests/spark/test_texts.py",
    "spark_few_filed": "tests/spark/test_filed_facts.py",
    "spark_skew_from": "tests/spark/test_updates.py",
}
"""Those that the evaluation of small programs in one process does not meet, and where they are set."""

THREADS = {name: values[0] for name, values in EXTREMES.items() if "share" in name or "divide" in name} | {
    "fork_index_share": SETTINGS.fork_index_share,
    "separation_share": SETTINGS.separation_share,
}
"""Several threads share every round, row by row."""


@contextmanager
def forced(**values: float) -> Iterator[None]:
    """With other values of some settings."""
    before = dict(vars(SETTINGS))
    try:
        for name, value in values.items():
            assert hasattr(SETTINGS, name), name
            setattr(SETTINGS, name, value)
        yield
    finally:
        vars(SETTINGS).clear()
        vars(SETTINGS).update(before)


def drawn(random: Random) -> dict[str, float]:
    """Some settings at extremes: one, a few, or about half of them."""
    number = random.choice((1, 1, 2, 4, len(EXTREMES) // 2))
    values = {name: random.choice(EXTREMES[name]) for name in random.sample(sorted(EXTREMES), number)}
    return values | THREADS if random.random() < 0.2 else values
