"""Errors of evaluation."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

RUN: tuple[Entry, ...] = (
    Entry(
        "E0228",
        "counts and sums over too many values of judged facts",
        "A count or sum of nothing is 0. Where only the facts that a subsumption judges say what is counted for, it"
        " stands for two: one for values that there is something of, and one for those that there is nothing of."
        " Counts over the same variables share these; over other variables they double them. A subsumption may count"
        " over eight different lists of variables. All other counts and sums are free.",
        ".decl e(x: number)\n.input e\n.decl p("
        + ", ".join(f"x{i}: number" for i in range(9))
        + ")\n.input p\np("
        + ", ".join(f"x{i}" for i in range(9))
        + ") <= p("
        + ", ".join("1" for i in range(9))
        + ") :- "
        + ", ".join(f"1 = count : {{ e(x{i}) }}" for i in range(9))
        + ".",
        ".decl e(x: number)\n.input e\n.decl counted(x: number, n: number)\n"
        "counted(x, n) :- e(x), n = count : { e(x) }.\n.decl p(x: number, y: number)\n.input p\n"
        "p(x, y) <= p(1, 1) :- counted(x, 1), counted(y, 1).",
    ),
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
        "group of an aggregate known only by the facts that a subsumption judges",
        "An aggregate is evaluated for every value of its group: of the variables that it shares with the rule around"
        " it. Where its body only tests such a variable, the values come from the rest of the rule. A subsumption"
        " judges facts as soon as they are derived, and they may be gone at once: its aggregates must know their groups"
        " beforehand. Bind the variable by an atom inside the braces.",
        ".decl item(x: number)\n"
        ".decl chosen(x: number)\n"
        "item(1). item(2). chosen(2).\n"
        "chosen(x + 1) :- chosen(x), x < 5.\n"
        "chosen(x) <= chosen(z) :- x < z, 1 = count : { item(y), y < x }.",
        ".decl item(x: number)\n"
        ".decl chosen(x: number)\n"
        "item(1). item(2). chosen(2).\n"
        "chosen(x + 1) :- chosen(x), x < 5.\n"
        "chosen(x) <= chosen(z) :- x < z, 1 = count : { item(x), item(y), y < x }.",
    ),
    Entry(
        "E0603",
        "time limit reached",
        "The evaluation took longer than the limit that was set for it. It was abandoned; the previous epoch stands."
        " Give it more time, or look at the profile (`--stats`) for the rule that takes the time.",
        "elastalog run program.dl --timeout 10",
        "elastalog run program.dl --timeout 600",
    ),
    Entry(
        "E0604",
        "memory limit reached",
        "The process needs more memory than the limit that was set for it. The evaluation was abandoned; the previous"
        " epoch stands. Raise the limit, evaluate on Spark, or look at the profile (`--stats`) for the relation that"
        " grows.",
        "elastalog run program.dl --max-memory 1G",
        "elastalog run program.dl --max-memory 8G",
    ),
    Entry(
        "E0605",
        "too many facts in one relation",
        "A relation of the kernel holds about a thousand million facts at most. Often a rule has a product in it that"
        " was not meant: atoms of the body that share no variable.",
        ".decl a(x: number)\n.decl b(y: number)\n.decl pair(x: number, y: number)\npair(x, y) :- a(x), b(y).",
        ".decl a(x: number)\n.decl b(y: number)\n.decl pair(x: number, y: number)\npair(x, y) :- a(x), b(y), x < y.",
    ),
    Entry(
        "E0606",
        "unknown relation in a query or an update",
        "A query, a fact or an update names a relation that the program does not declare. Names are case-sensitive.",
        'db.explain("Path(1, 4)")',
        'db.explain("path(1, 4)")',
    ),
    Entry(
        "E0607",
        "wrong number of values",
        "A query or a fact must give as many arguments as the relation has attributes. Write `_` for an argument that"
        " does not matter.",
        'db.query("path(1)")',
        'db.query("path(1, _)")',
    ),
    Entry(
        "E0608",
        "variable in a fact",
        "A fact consists of values only. A variable or `_` makes a pattern, which stands for many facts.",
        'db.explain("path(1, X)")',
        'db.explain("path(1, 4)")',
    ),
    Entry(
        "E0609",
        "not one atom",
        "A fact is given as one atom: a relation with its arguments, without a body or further atoms.",
        'db.explain("edge(1, 2), edge(2, 3)")',
        'db.explain("edge(1, 2)")',
    ),
    Entry(
        "E0610",
        "value of another type in a query",
        "The argument of a query or a fact does not have the type of the attribute. Symbols are written in double"
        " quotes, numbers without.",
        "db.query('edge(\"1\", X)')",
        "db.query('edge(1, X)')",
    ),
    Entry(
        "E0611",
        "update not committed",
        "The changes of an update are known when it has been committed, which is done at the end of its `with` block.",
        'with db.update() as u:\n    u.insert("edge", [(1, 2)])\n    print(u.changes)',
        'with db.update() as u:\n    u.insert("edge", [(1, 2)])\nprint(u.changes)',
    ),
    Entry(
        "E0612",
        "unknown value of an option",
        "An option was given a value that it does not have. The help line names the values it can have.",
        'elastalog.open("program.dl", levels="globl")',
        'elastalog.open("program.dl", levels="global")',
    ),
    Entry(
        "E0613",
        "not a regular expression",
        "The first argument of `match` must be a regular expression; here it came from a fact, and is none. Neither"
        " `match` nor `!match` holds with it, and evaluation goes on. Characters with a meaning, such as `( [ * + ?`,"
        " need a backslash to stand for themselves; in a string of the program the backslash is written twice.",
        ".decl name(x: symbol)\n.decl pattern(p: symbol)\n.decl found(x: symbol)\n"
        'name("f()"). pattern("f(").\nfound(x) :- name(x), pattern(p), match(p, x).',
        ".decl name(x: symbol)\n.decl pattern(p: symbol)\n.decl found(x: symbol)\n"
        'name("f()"). pattern("f\\\\(.*").\nfound(x) :- name(x), pattern(p), match(p, x).',
    ),
    Entry(
        "E0614",
        "too many values in a range",
        "Every value that `x = range(…)` gives is a row that has to be stored. This range has far too many, or never"
        " comes to its end because adding the step to a large float does not change it. Bind the variable by an atom"
        " and compare it with the ends of the range instead.",
        ".decl port(x: number)\n.decl known(x: number)\nknown(80).\nport(x) :- x = range(0, 1000000000000).",
        ".decl port(x: number)\n.decl known(x: number)\nknown(80).\nport(x) :- known(x), x >= 0, x < 1000000000000.",
    ),
    Entry(
        "E0615",
        "a limit has cut the evaluation short",
        "`.limitsize` stops the evaluation of a stratum when a relation holds that many facts. What is there then is"
        " not the whole answer, so there is nothing that an update could keep up to date.",
        ".decl n(x: number)\n.limitsize n(n=100)\nn(0).\nn(x + 1) :- n(x), x < 1000.",
        ".decl n(x: number)\n.limitsize n(n=2000)\nn(0).\nn(x + 1) :- n(x), x < 1000.",
    ),
    Entry(
        "E0616",
        "no such rule to remove",
        "A rule to remove must be one of the program. It is named by its number, as `elastalog show` and the shell's"
        " `rule` count them, or by its text: spaces and line breaks do not matter, names of variables and the order of"
        " the body do. Numbers change when rules come and go; texts do not.",
        'db.change_rules(removed=["path(x, y) :- edg(x, y)."])',
        'db.change_rules(removed=["path(x, y) :- edge(x, y)."])',
    ),
    Entry(
        "E0617",
        "argument of the wrong kind",
        "A call from Python was given something that the argument cannot be. The message says what it must be; the"
        " error is a `TypeError` as well.",
        'db.at("1")\ndb.query(("path", (1, 4)))',
        'db.at(1)\ndb.query("path(1, 4)")',
    ),
    Entry(
        "E0618",
        "not one query",
        "A query is the body of a rule: atoms, negations, comparisons and aggregates, separated by commas. Its columns"
        " are the variables, or the arguments of a head in front of it. Every alternative of it has all columns.",
        'db.query("edge(1, X) ; edge(Y, 3)")',
        'db.query("edge(1, X) ; edge(X, 3)")',
    ),
    Entry(
        "E0619",
        "parameters of a query",
        "A name with a question mark is a parameter of a query. Every one needs a value, and every value given needs a"
        " place. Values are bound, not pasted: a text with quotes in it is just a text.",
        'db.query("path(?from, X)", start=1)',
        'db.query("path(?from, X)", parameters={"from": 1})',
    ),
    Entry(
        "E0620",
        "an update that is over",
        "An update is one epoch: at the end of its `with` block, or by `commit`, it is committed, and takes nothing any"
        " more. One whose block an exception has left was dropped. What was not committed because the commit itself"
        " failed may be committed again.",
        'with db.update() as u:\n    u.insert("edge", [(1, 2)])\nu.insert("edge", [(2, 3)])',
        'with db.update() as u:\n    u.insert("edge", [(1, 2)])\n    u.insert("edge", [(2, 3)])',
    ),
    Entry(
        "E0622",
        "a text too long",
        "A functor may make texts of up to 67,108,864 characters. Recursion that joins texts without an end reaches"
        " that sooner than the memory's end.",
        '.decl p(x: symbol)\np("ab").\np(cat(x, x)) :- p(x).',
        '.decl p(x: symbol)\np("ab").\np(cat(x, x)) :- p(x), strlen(x) < 1000.',
    ),
    Entry(
        "E0623",
        "a package that is not installed",
        "`to_pandas` and `to_polars` need the package that they are named after, which Elastalog does not install."
        " `to_arrow` needs nothing more, nor does iterating over a relation.",
        'db["path"].to_pandas()',
        "pip install pandas",
    ),
    Entry(
        "E0624",
        "operators that are not compiled",
        "Elastalog runs compiled operators. Its wheel brings them for Linux on x86-64 (with AVX2, as nearly all"
        " processors since 2015 have it) and aarch64; elsewhere, and from sources, the first run compiles them with"
        " numba, once per machine.",
        "pip install elastalog",
        'pip install "elastalog[build]"',
    ),
)
