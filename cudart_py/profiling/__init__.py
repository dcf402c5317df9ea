"""The profile of launches, and the source annotated with its metrics."""
