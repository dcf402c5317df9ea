"""Calls that concern modules and their functions."""
