"""Read fatbins: their entries, compressed or not."""
