"""Programs that have been read and checked, and changes of their rules."""

from elastalog.program.program import (
    LARGEST_FILE,
    Program,
    as_program,
    declarations_in,
    read_program_text,
    with_arithmetic,
)
from elastalog.program.rule_change import (
    ProgramDifference,
    RuleChange,
    RuleEdits,
    change_rules,
    difference,
    directive_texts,
    removable_rules,
    rule_clauses,
    rule_texts,
    single_rule,
    with_rules,
)
from elastalog.program.single_rules import judged_in, shown_rule

__all__ = [
    "LARGEST_FILE", "Program", "ProgramDifference", "RuleChange", "RuleEdits", "as_program", "change_rules",
    "declarations_in", "difference", "directive_texts", "judged_in", "read_program_text", "removable_rules",
    "rule_clauses", "rule_texts", "shown_rule", "single_rule", "with_arithmetic", "with_rules",
]  # fmt: skip
