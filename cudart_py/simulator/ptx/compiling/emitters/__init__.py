"""Emit the Python source of instructions, grouped by kind."""
