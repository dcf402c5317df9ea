"""Calls that concern streams and events."""
