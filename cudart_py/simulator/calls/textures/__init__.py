"""Calls of textures and surfaces."""
