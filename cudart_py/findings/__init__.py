"""Findings of the simulator's checks as records, and the reports of them that other programs read."""
