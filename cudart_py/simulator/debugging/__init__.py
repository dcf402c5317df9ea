"""The debugger's part of the simulator: the recording of launches, and the views of the records."""
