"""Gates that compare the times or counters of benchmarks with a stored run, and fail on regressions."""
