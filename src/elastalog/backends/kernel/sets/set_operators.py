"""Operators of the strategies that maintain sets. The annotations of a row mean something else here than for `elastic`:

- `count` is C_nr, where it is kept, otherwise 1;
- `level` is 2 · C_r (0 where C_r is not kept), + 1 unless the fact is explicit.

Strategies that look ahead keep no C_r. During an update, MARKED in the level of a touched entry then says that the
next update will question the fact, and the highest level of a body, which bindings carry (see `level_views`), whether a
derivation has such a body fact. Deleted facts that will certainly be back have level 0, as explicit ones: if the
highest level of a body is 0, its head will certainly be there too (ASSURED).

OTHER of a touched entry is the number of the last evaluation that listed it, so that every head is listed once an
evaluation. The caller makes room first: one more row, touched entry and list entry for each row of a block suffice.
Operators that list entries take the number of those that are listed already, and return it.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import FLAG, INT, MATRIX, WORDS, int64, operator
from elastalog.backends.kernel.machine.set_rounds import ASSURED, MARKED, QUESTIONED
from elastalog.backends.kernel.store.annotations import ABSENT, DERIVED, IS, WAS, entry_of, facts_of
from elastalog.backends.kernel.store.bookkeeping import touched_entry
from elastalog.backends.kernel.store.memory import relation_descriptor_at

RECURSIVE = 2
"""What one derivation by a recursive rule adds to `level`."""


@operator(INT, INT, WORDS, WORDS, INT, WORDS)
def expect(address, wanted, kept, expected, entries):
    """Marks those of some rows (negative numbers are none) that are present and not among the few that are kept, and
    lists their entries, each once. `expected` is the mark of facts that are known to go."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    number = 0
    for i in range(wanted.shape[0]):
        row = wanted[i]
        if row < 0 or facts.level[row] == ABSENT:
            continue
        is_kept = False
        for k in range(kept.shape[0]):
            is_kept = is_kept or kept[k] == row
        if is_kept:
            continue
        entry = touched_entry(home, facts, row, DERIVED, 0)
        fact = entry_of(facts.touched, entry)
        if fact.marks & IS and not fact.marks & expected:
            fact.marks |= expected
            fact.new |= MARKED
            if fact.marks & WAS:
                # A derivation is new if a body fact of the delta was not there before: this one was.
                fact.other = 0
            entries[number] = entry
            number += 1
    return number


@operator(INT, MATRIX, INT, INT, INT, INT, WORDS, WORDS)
def take_noted(touched, used, noted, presence, any_of, entries, counts):
    """Takes what look-ahead has noted off all entries; lists those that are present or not (`presence` is IS or 0) and
    have any of some marks, with their QUESTIONED derivations."""
    number = 0
    for entry in range(used):
        fact = entry_of(touched, entry)
        value = fact.new
        if value & noted:
            fact.new = value & (DERIVED | MARKED | ASSURED) & ~noted
            if fact.marks & IS == presence and fact.marks & any_of:
                entries[number] = entry
                counts[number] = value // QUESTIONED
                number += 1
    return number


@operator(INT, WORDS, MATRIX, INT, INT, INT, WORDS)
def select(entries, touched, looked_at, wanted, added, chosen):
    """Lists the entries whose marks, as far as they are looked at, are those wanted, and adds marks to them."""
    number = 0
    for i in range(entries.shape[0]):
        fact = entry_of(touched, entries[i])
        if fact.marks & looked_at == wanted:
            fact.marks |= added
            chosen[number] = entries[i]
            number += 1
    return number


@operator(INT, MATRIX, INT, MATRIX, FLAG, INT, WORDS, INT)
def list_entries(block, used, touched, is_marking, stamp, listed_entries, listed):
    """Lists the entries in word 0 of a block, each once; marks those of derivations with a marked body fact."""
    block_width = block.shape[1]
    for i in range(used):
        fact = entry_of(touched, block[i, 0])
        if is_marking and block[i, block_width - 2] >= MARKED:
            fact.new |= MARKED
        if fact.other != stamp:
            fact.other = stamp
            listed_entries[listed] = block[i, 0]
            listed += 1
    return listed


@operator(INT, INT, MATRIX, INT, INT, INT, WORDS, INT)
def list_rows(address, block, used, word, stamp, listed_entries, listed):
    """Touches the rows in one word of a block and lists their entries, each once."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    for i in range(used):
        entry = touched_entry(home, facts, int64(block[i, word]), DERIVED, 0)
        fact = entry_of(facts.touched, entry)
        if fact.other != stamp:
            fact.other = stamp
            listed_entries[listed] = entry
            listed += 1
    return listed


@operator(INT, MATRIX, INT, FLAG, FLAG, WORDS)
def finish(touched, used, has_nonrecursive, has_recursive, changed):
    """Ends the update of a relation's stratum: keeps only WAS and IS, lists the entries whose membership changed.
    Returns how many these are; less than 0 if facts have counters that cannot be: negative, or positive though absent,
    or none though present."""
    faults = 0
    listed = 0
    for entry in range(used):
        fact = entry_of(touched, entry)
        fact.marks &= WAS | IS
        is_present = fact.marks & IS != 0
        of_recursive = fact.new >> 1
        if (has_nonrecursive and (fact.count < 0 or (not is_present and fact.count > 0))) or (
            has_recursive
            and (
                of_recursive < 0
                or fact.new >= ABSENT
                or (not is_present and of_recursive > 0)
                or (is_present and of_recursive + fact.count == 0)
            )
        ):
            faults += 1
        if not is_present:
            fact.new = ABSENT
            fact.count = 0
        fact.other = ABSENT
        if (fact.marks & WAS != 0) != is_present:
            changed[listed] = entry
            listed += 1
    return -faults if faults else listed
