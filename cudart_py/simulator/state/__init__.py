"""State of the driver in software: devices, contexts, memory, streams and their work."""
