"""Facts from and to Spark: its session, DataFrames, sources, sinks and streams of updates. Imports pyspark only inside
functions that need it. What evaluates on Spark is `elastalog.backends.spark`; what users call is `elastalog.spark`."""
