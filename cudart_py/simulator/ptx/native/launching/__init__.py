"""Run launches in machine code: their memory, their turns, what they ask Python, and how they end."""
