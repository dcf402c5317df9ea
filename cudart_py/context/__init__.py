"""Devices with their contexts, properties and limits, and the rules for everything that lives in a context."""
