"""The solutions of the exercises: one file a stop, of the same name as the file that it starts from."""
