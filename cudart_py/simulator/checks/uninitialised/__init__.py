"""Uninitialised values: reads of bytes that nothing has written, and the uses that such values reach."""
