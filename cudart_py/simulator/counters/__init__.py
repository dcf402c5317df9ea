"""Counters: what the hardware would count of a launch."""
