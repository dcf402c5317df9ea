"""Code shared by the software versions of the libraries: calls, operands and numbers."""
