"""Link several images into one, as machine code and as PTX."""
