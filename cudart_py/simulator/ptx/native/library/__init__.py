"""Functions in machine code beside the kernels: one for each kind of access, and for what lanes do together."""
