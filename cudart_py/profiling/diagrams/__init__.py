"""Diagrams of what one warp did: its lanes and the memory that they touch, and which of them were active."""
