"""Integer arithmetic and logic."""
