"""Diagrams of one warp's execution: its lanes and the memory that they touch, and the active lanes over time."""
