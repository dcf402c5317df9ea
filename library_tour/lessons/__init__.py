"""The lessons, one module a stop: what one learns, the steps of the code, and an exercise."""
