"""Benchmarks compared with a stored run, by their times and by their counters, so that a change for the worse fails."""
