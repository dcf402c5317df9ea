"""Uninitialised values: reads of bytes that nothing has written, and the uses of such values."""
