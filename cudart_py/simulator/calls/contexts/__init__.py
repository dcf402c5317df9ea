"""Calls of devices and of their contexts: attributes, limits, resets, what processes share."""
