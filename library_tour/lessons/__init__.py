"""The lessons, one module a stop: what is to be learnt, the steps of the code, and an exercise."""
