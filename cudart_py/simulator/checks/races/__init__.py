"""Races: accesses by two threads to the same bytes that no happens-before relation orders."""
