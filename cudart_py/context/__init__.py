"""Devices with their contexts, properties and limits, and what holds for everything that lives in a context."""
