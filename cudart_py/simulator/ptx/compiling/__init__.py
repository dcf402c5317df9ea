"""Turn the basic blocks of a parsed program into Python functions."""
