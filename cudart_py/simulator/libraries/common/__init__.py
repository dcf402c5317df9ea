"""What the software versions of the libraries share: their calls, operands and numbers."""
