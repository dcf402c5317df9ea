"""Counters: the values that the hardware's performance counters would have after a launch."""
