"""Errors of the store."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

STORAGE: tuple[Entry, ...] = (
    Entry(
        "E0801",
        "not a store",
        "The folder is not a store, or the store was never finished: a store is made by `elastalog init` or by"
        " `elastalog.open(program, facts, store=PATH)`, and exists from the moment that call returns.",
        "elastalog query nowhere 'path(1, X)'",
        "elastalog init here reach.dl -F facts\nelastalog query here 'path(1, X)'",
    ),
    Entry(
        "E0802",
        "the folder exists already",
        "A store, or a copy of one, is made in a folder that is new or empty; a copy never in the folder of the store"
        " itself. A store that is there is opened and updated: `elastalog apply`, or `elastalog.open(store=PATH)`.",
        "elastalog init here reach.dl -F facts  # a second time",
        "elastalog apply here monday.diff",
    ),
    Entry(
        "E0803",
        "store of a later format",
        "The store was written by a later version of Elastalog, in a way that this one does not know. It is left"
        " as it is.",
        "elastalog log STORE  # with the older version",
        "elastalog log STORE  # with the version that wrote it, or a later one",
    ),
    Entry(
        "E0804",
        "the store has another writer",
        "One process at a time writes a store. The message names the one that does. Its lock ends with the"
        " process, however it ends, so there is never a lock to remove by hand. Any number of readers can open the"
        " store meanwhile; they see the last epoch that was committed.",
        'first = elastalog.open(store="here")\nsecond = elastalog.open(store="here")',
        'first = elastalog.open(store="here")\nsecond = elastalog.open(store=elastalog.Store("here", read_only=True))',
    ),
    Entry(
        "E0805",
        "damaged file",
        "A file of the store is not what was written: its size or its checksum differs. No answer is given from"
        " it. An interrupted write cannot be the cause, since it leaves the files of the previous epoch whole;"
        " look at the disk, or at what else writes to the folder. If a journal is damaged, the epochs before the"
        " damage can still be exported.",
        "elastalog query STORE 'path(1, X)'  # journal-1.log is damaged after epoch 16",
        "elastalog export STORE --at 16 -D facts",
    ),
    Entry(
        "E0806",
        "missing file",
        "The manifest of the store names a file that is not there. Copy or move a store as a whole, while nothing"
        " writes to it.",
        "cp STORE/*.json STORE/CURRENT elsewhere",
        "cp -r STORE elsewhere",
    ),
    Entry(
        "E0807",
        "unreadable file",
        "The system refuses to read a file of the store. The message has its reason.",
        "sudo elastalog init STORE reach.dl\nelastalog log STORE",
        "elastalog init STORE reach.dl\nelastalog log STORE",
    ),
    Entry(
        "E0808",
        "the store cannot be written",
        "The system refuses a write: the disk is full, the folder is read-only, or the like. The epoch that was"
        " being committed does not exist, in the store or in the session; the one before it stands, and the update"
        " can be applied again when there is room.",
        'db.apply({"edge": rows})  # no space left on device',
        'db.apply({"edge": rows})  # after making room',
    ),
    Entry(
        "E0809",
        "the store must be opened again",
        "A write failed, and what it left could not be removed either; or the file `LOCK` was removed while a session"
        " had the store, so that another process may be writing. Nothing can be appended safely. What was committed is"
        " safe: opening the store again finds the last epoch and repairs the rest.",
        "db.apply(update)  # after an error of the disk",
        'db.close()\ndb = elastalog.open(store="here")\ndb.apply(update)',
    ),
    Entry(
        "E0810",
        "store of another program",
        "A store holds what follows by the rules of one program, whose text it keeps. The program given is not that"
        " one.",
        'elastalog.open("other.dl", store="here")',
        'elastalog.open(store="here")',
    ),
    Entry(
        "E0811",
        "store with other options",
        "How levels are counted and which strategy keeps them was decided when the store was made, since its"
        " annotations depend on it.",
        'elastalog.open(store="here", levels="global")',
        'elastalog.open("reach.dl", facts="facts/", store="there", levels="global")',
    ),
    Entry(
        "E0812",
        "store of another layout",
        "The store was written for relations that this version of Elastalog does not find in the same program, so the"
        " stored state cannot be continued. Export the facts with the version that wrote it. Where only the hidden"
        " relations that serve negations and aggregates are others, the program is recomputed instead.",
        "elastalog apply STORE update.diff",
        "elastalog export STORE -D facts  # with the older version\nelastalog init NEW reach.dl -F facts",
    ),
    Entry(
        "E0813",
        "epoch not kept",
        "A store keeps a number of past epochs, its retention, and none of the future. `elastalog log` lists those"
        " it has.",
        "db.at(3)  # of 5,000",
        'elastalog.open("reach.dl", facts="facts/", store=elastalog.Store("here", retention=10_000))',
    ),
    Entry(
        "E0814",
        "session that cannot be updated",
        "The session reads a store beside its writer, shows an earlier epoch, or has been closed.",
        'db.at(3).apply({"edge": [(1, 2)]})',
        'db.apply({"edge": [(1, 2)]})',
    ),
    Entry(
        "E0815",
        "no earlier epochs",
        "Earlier epochs are read from a store. A session without one keeps the present epoch only.",
        'db = elastalog.open("reach.dl", facts="facts/")\ndb.at(1)',
        'db = elastalog.open("reach.dl", facts="facts/", store="here")\ndb.at(1)',
    ),
    Entry(
        "E0816",
        "unfinished write discarded",
        "The process that wrote the store ended while it was committing an epoch: that epoch does not exist, the"
        " one before it stands. The update can be applied again; if it carried a source and a batch, that is safe"
        " even when it is not known whether it was committed.",
        "elastalog apply STORE update.diff  # ends by a power failure",
        "elastalog apply STORE update.diff --source files --batch 17",
    ),
    Entry(
        "E0818",
        "nothing to open",
        "A session is opened from a program, or from a store, which has one.",
        'elastalog.open(facts="facts/")',
        'elastalog.open("reach.dl", facts="facts/")',
    ),
    Entry(
        "E0819",
        "session of another process",
        "The session was opened by the process that this one was forked from, which goes on writing its store. A"
        " forked child can read what the session held at the fork, but not update its store, and closing it there"
        " changes nothing. If another thread was using the session at that instant, the copy in the child is of no"
        " use at all. Open sessions after the fork, in the process that uses them; `Store(…, read_only=True)` reads"
        " beside a writer.",
        'db = elastalog.open(store="here")\nif os.fork() == 0:\n    db.apply({"edge": [(1, 2)]})',
        'if os.fork() == 0:\n    with elastalog.open(store="here") as db:\n        db.apply({"edge": [(1, 2)]})',
    ),
    Entry(
        "E0829",
        "no locks on the file system of a store",
        "One process at a time writes a store, and a lock of the file system sees to it. Some network file systems have"
        " none, or none as they are mounted: then two writers could not know of each other, and one would lose its"
        " epochs. Reading such a store, with `Store(…, read_only=True)`, is fine while nobody writes it.",
        "elastalog apply /net/reach.store 1.diff  # NFS mounted with `nolock`",
        "elastalog apply /var/lib/reach.store 1.diff",
    ),
    Entry(
        "E0875",
        "address that cannot be read",
        "Folders of facts, and stores that are only read, may be at an address: `s3://`, `gs://`, `abfs://`, `hdfs://`."
        " pyarrow reads it, with the rights that the environment or the files of the cloud's own tools give. The note"
        " has what it says.",
        'elastalog.open("reach.dl", facts="s3://buckett/facts")',
        'elastalog.open("reach.dl", facts="s3://bucket/facts")',
    ),
    Entry(
        "E0876",
        "no store can be written at an address",
        "One process at a time writes a store. At an address that is made sure of by puts that depend on what is there"
        " (If-None-Match, If-Match), through the package `obstore`. Where these are not to be had (`hdfs://`, and"
        " servers that pass over the conditions), a store is written on a disk; a copy of it may be put anywhere, and"
        " be read there.",
        'elastalog.open(store="hdfs://namenode/reach.store")',
        'elastalog.open(store=elastalog.Store("hdfs://namenode/reach.store", read_only=True))',
    ),
    Entry(
        "E0878",
        "store taken over by another writer",
        "Who writes a store at an address has a lease, which it renews every ten seconds. This process did not for half"
        " a minute (it was stopped, or could not reach the server), and another one has opened the store for writing."
        " From then on nothing that this one writes counts. Whether the update under way is in the store is seen by"
        " opening it again.",
        'db.apply({"edge": [(1, 2)]})  # after the machine slept',
        'elastalog.open(store="s3://bucket/reach.store").apply({"edge": [(1, 2)]}, source="feed", batch=7)',
    ),
    Entry(
        "E0820",
        "a relation is declared in another way",
        "A store, or a session, goes over to another program by changes of its rules; the facts stay. So a relation"
        " must keep its attributes and their types.",
        ".decl edge(x: number, y: number, weight: number)",
        ".decl weighted(x: number, y: number, weight: number)\n.decl edge(x: number, y: number)",
    ),
)
