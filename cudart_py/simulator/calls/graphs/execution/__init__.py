"""Executable graphs, and the order in which their operations run."""
