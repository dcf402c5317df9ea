"""Memory, copies and textures."""
