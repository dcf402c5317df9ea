"""The lessons, one module per stop: what the reader learns, the steps of the code, and an exercise."""
