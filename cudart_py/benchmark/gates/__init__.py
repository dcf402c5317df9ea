"""Gates that compare benchmarks with a stored run, by their times and by their counters, and fail on regressions."""
