"""Calls of modules and their functions."""
