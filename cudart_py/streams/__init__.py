"""Streams, events, graphs and host functions."""
