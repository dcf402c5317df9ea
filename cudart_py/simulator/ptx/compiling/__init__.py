"""Compile the basic blocks of a parsed program to Python functions."""
