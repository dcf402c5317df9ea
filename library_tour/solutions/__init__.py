"""The solutions of the exercises; each file has the same name as the starting code of its exercise."""
