"""Texts and tables that show the state of a stopped launch."""
