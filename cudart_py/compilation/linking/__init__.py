"""Several images made one, as machine code and as PTX."""
