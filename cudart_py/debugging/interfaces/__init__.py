"""The debugger's interfaces: one for pipes and terminals, and a full-screen one."""
