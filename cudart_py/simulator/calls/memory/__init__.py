"""Calls that allocate, free, copy, fill and describe memory."""
