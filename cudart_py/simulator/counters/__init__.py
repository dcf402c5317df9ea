"""Counters: the values that a GPU's performance counters would have after a launch."""
