"""The queue: streams, the work that waits in them, and the graphs into which streams are captured."""
