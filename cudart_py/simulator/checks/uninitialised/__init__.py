"""Uninitialised values: reads of bytes that nothing has written, and where such values arrive."""
