"""The queue: streams, the work that waits in them, and the graphs that streams are captured to."""
