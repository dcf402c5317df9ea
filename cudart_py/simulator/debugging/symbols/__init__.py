"""Symbols of a kernel, from the compiler and from the source: lines, types and variables."""
