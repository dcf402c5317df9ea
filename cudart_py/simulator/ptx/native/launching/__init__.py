"""Run launches in machine code: prepare their memory, schedule their blocks, answer their calls, and report faults."""
