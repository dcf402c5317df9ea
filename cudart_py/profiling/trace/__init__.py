"""Traces: the driver calls of a program and the work in its streams, in the Trace Event format."""
