"""The meaning of PTX instructions, grouped as in the manual: one lowering per opcode serves both engines."""
