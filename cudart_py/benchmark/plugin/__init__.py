"""Parts of the pytest plugin: axes, locked clocks, and files of findings and measurements."""
