"""Calls that concern devices and their contexts: attributes, limits, resets, and sharing between processes."""
