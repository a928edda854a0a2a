"""Errors of evaluation."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

RUN: tuple[Entry, ...] = (
    Entry(
        "E0601",
        "arithmetic overflow",
        "A functor or a sum has a result that its type can not hold. Integers have 64 bits: `number` goes from"
        " -9223372036854775808 to 9223372036854775807, `unsigned` from 0 to 18446744073709551615. A result outside is"
        " never wrapped around, since wrong facts would follow from it. Exclude such operands with a comparison, or"
        " compute with floats.",
        ".decl power(exponent: number, value: number)\n"
        "power(0, 1).\n"
        "power(n + 1, 2 * value) :- power(n, value), n < 100.",
        ".decl power(exponent: number, value: number)\n"
        "power(0, 1).\n"
        "power(n + 1, 2 * value) :- power(n, value), n < 62.",
    ),
    Entry(
        "E0602",
        "group of an aggregate known only by recursion",
        "An aggregate is evaluated for every value of its group: of the variables that it shares with the rule around"
        " it. Where its body only tests such a variable, the values come from the rest of the rule; and they must be"
        " known before the recursion starts. Bind the variable by an atom inside the braces, or by one outside the"
        " recursion.",
        ".decl item(x: number)\n"
        ".decl chosen(x: number)\n"
        "item(1). item(2). chosen(2).\n"
        "chosen(x + 1) :- chosen(x), 1 = count : { item(y), y < x }.",
        ".decl item(x: number)\n"
        ".decl chosen(x: number)\n"
        "item(1). item(2). chosen(2).\n"
        "chosen(x + 1) :- chosen(x), 1 = count : { item(x), item(y), y < x }.",
    ),
    Entry(
        "E0603",
        "not a regular expression",
        "The first argument of `match` must be a regular expression in the syntax of Python. The whole text has to"
        " match it. Characters with a meaning, such as `( [ * + ?`, need a backslash to stand for themselves; in a"
        " string of the program the backslash is written twice.",
        '.decl name(x: symbol)\n.decl call(x: symbol)\nname("f()").\ncall(x) :- name(x), match(".*(", x).',
        '.decl name(x: symbol)\n.decl call(x: symbol)\nname("f()").\ncall(x) :- name(x), match(".*\\\\(.*", x).',
    ),
    Entry(
        "E0604",
        "too many values in a range",
        "Every value that `x = range(…)` gives is a row that has to be stored. This range has far too many, or never"
        " comes to its end because adding the step to a large float does not change it. Bind the variable by an atom"
        " and compare it with the ends of the range instead.",
        ".decl port(x: number)\n.decl known(x: number)\nknown(80).\nport(x) :- x = range(0, 1000000000000).",
        ".decl port(x: number)\n.decl known(x: number)\nknown(80).\nport(x) :- known(x), x >= 0, x < 1000000000000.",
    ),
)
