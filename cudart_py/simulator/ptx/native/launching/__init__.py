"""Run launches in machine code: their memory, how their blocks take turns, their calls to Python, and their end."""
