"""Facts through Spark: sessions, sources, sinks and streams. Imports pyspark only inside functions that need it."""
