"""Calls of streams and events."""
