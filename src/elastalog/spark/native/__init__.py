"""The data source `elastalog`: relations, changes and updates of stores under Spark's own reader and writer."""
