"""Where strata are evaluated on Spark: by the kernel inside tasks. How facts come from DataFrames and go to them is in
`elastalog.pipeline.spark`; what users call is `elastalog.spark`.

In the order of a job: `placement` chooses tasks or the driver, `strata` makes the job, `jobs` runs it, `task` and
`exchange` are what tasks do, `messages` and `transports` what they give each other, `results` what they tell the
driver, `consensus` how new values get their ids, `relations` and `word_files` where facts are meanwhile.
"""
