"""The debugger's part inside the simulator: what it records of a launch, and what it reads from the records."""
