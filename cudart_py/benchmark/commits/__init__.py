"""Benchmarks of a repository's commits: the commands that compare two of them, search them, and store their history."""
