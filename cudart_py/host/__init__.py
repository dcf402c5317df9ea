"""What the toolkit asks of Python and of the operating system: callers' frames, files and locks."""
