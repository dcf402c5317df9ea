"""Resolve the addresses of lanes to places in memory, check them, and move data."""
