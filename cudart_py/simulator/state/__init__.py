"""State: what the driver in software keeps: devices, contexts, memory, streams and their work."""
