"""Code that the software versions of the libraries share: calls, operands and numbers."""
