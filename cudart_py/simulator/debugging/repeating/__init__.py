"""Launches that run again for the debugger, or would never end."""
