"""Read PTX text into a parsed program, and check it."""
