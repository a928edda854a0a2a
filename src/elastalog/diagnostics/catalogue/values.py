"""Functors that users implement, and subsumption, as far as a run has to do with them."""

from __future__ import annotations

from typing import Final

from elastalog.diagnostics.catalogue.entry import Entry

VALUES: Final[tuple[Entry, ...]] = (
    Entry(
        "E0640",
        "functor of the user that failed",
        "A function given for a functor raised an exception, or gave something that is not of the declared type. The "
        "message has the arguments. `None` is no error: it means that there is no value, and the rule gives nothing.",
        '.functor half(x: number): number\n// functors={"half": lambda x: x / 2}',
        '.functor half(x: number): number\n// functors={"half": lambda x: x // 2}',
    ),
    Entry(
        "E0641",
        "functor without a function",
        "A program that applies a functor is checked without it, but evaluated only with a function of that name.",
        'elastalog.open("hash.dl")',
        'elastalog.open("hash.dl", functors={"hash": lambda text: zlib.crc32(text.encode())})',
    ),
    Entry(
        "E0642",
        "stateful functor of a library",
        "Soufflé gives a stateful functor of a C library its own tables of texts and records, which do not exist here. "
        "Write it in Python, as a function of its arguments: the same arguments must always give the same result.",
        '.functor join(a: symbol, b: symbol): symbol stateful\n// libraries=["libjoin.so"]',
        '.functor join(a: symbol, b: symbol): symbol stateful\n// functors={"join": lambda a, b: a + b}',
    ),
    Entry(
        "E0643",
        "file of functors that cannot be run",
        "The file after `--functors` is a Python file that defines the functions by name. Running it raised an error.",
        "def half(x) return x // 2",
        "def half(x):\n    return x // 2",
    ),
    Entry(
        "E0660",
        "more pairs than can be written out together",
        "An `eqrel` relation is kept as classes, and a class of n members has n² pairs. They can be counted, looked up "
        "and iterated over, but not all be put into one table.",
        'db["same"].to_arrow()',
        'db.query("same(1, X)").to_arrow()',
    ),
    Entry(
        "E0661",
        "store of equivalence classes under Spark",
        "A store that was made in one process keeps `eqrel` relations as classes. Tasks of Spark maintain pairs.",
        'elastalog.open(store="db", engine="spark")',
        'elastalog.open(store="db", engine="local")',
    ),
    Entry(
        "E0662",
        "files of a store that hold no pairs",
        "A store keeps an `eqrel` relation as classes; whoever reads its files without opening it would find only the "
        "pairs that generate the relation.",
        'elastalog.spark.read_relation(spark, "db", "same")',
        'elastalog.open(store="db")["same"].to_spark()',
    ),
    Entry(
        "E0663",
        "question that needs too much memory",
        "A question may allocate a number of bytes of its own: in a service as `--question-memory` says, in a session"
        " within a block of `db.engine.within(memory=…)`. Beyond it, it is cancelled; nothing was changed. Often a"
        " query has a product in it that was not meant: atoms that share no variable.",
        "person(X), person(Y), person(Z)",
        "person(X), knows(X, Y), knows(Y, Z)",
    ),
    Entry(
        "E0740",
        "fact that rests on what was superseded",
        "Subsumption takes facts away that others dominate, and what they have given before stays. A proof of such a "
        "fact would need facts that are no more.",
        "elastalog explain shortest.dl 'seen(5)'",
        "elastalog explain shortest.dl 'far(5, 1)'",
    ),
    Entry(
        "E0840",
        "store of another functor",
        "A store remembers the signature and a digest of the source of every functor, because the facts that it keeps "
        "were made by that function. A changed function would have made others.",
        'elastalog.open(store="db", functors={"half": another})',
        'elastalog.open(store="db", functors={"half": half})',
    ),
    Entry(
        "E0670",
        "library that cannot be loaded",
        "A C library with functors is loaded only when it is asked for, with `-L DIR -l NAME` or `libraries=[…]`. There"
        " is no such file, or it is no shared library for this machine.",
        "elastalog run program.dl -l functors",
        "gcc -shared -fPIC -o libfunctors.so functors.c\nelastalog run program.dl -L . -l functors",
    ),
)
