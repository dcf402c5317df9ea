"""The table of opcodes."""
