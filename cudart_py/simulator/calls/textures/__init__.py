"""Calls that concern textures and surfaces."""
