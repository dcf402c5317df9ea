"""The common parts of the software versions of the libraries: calls, operands and numbers."""
