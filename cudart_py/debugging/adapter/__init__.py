"""The Debug Adapter Protocol, through which editors use the debugger."""
