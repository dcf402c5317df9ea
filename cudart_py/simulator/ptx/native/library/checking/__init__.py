"""Functions of the checks: they compare accesses with the records of earlier ones."""
