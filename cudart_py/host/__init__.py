"""Callers' frames, files and locks: everything that involves only the process and the operating system."""
