"""The checks' records of accesses to memory."""
