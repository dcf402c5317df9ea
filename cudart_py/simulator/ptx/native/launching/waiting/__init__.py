"""Lanes and blocks that wait for others."""
