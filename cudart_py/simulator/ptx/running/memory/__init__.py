"""Place the addresses of lanes in memory, check them, and move data."""
