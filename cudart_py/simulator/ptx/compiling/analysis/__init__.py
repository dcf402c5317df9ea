"""Analyses of a function's control flow."""
