"""Functions that access textures and surfaces."""
