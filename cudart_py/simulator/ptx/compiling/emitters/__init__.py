"""Write the Python source of instructions, by the kinds of what they do."""
