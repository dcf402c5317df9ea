"""IPython magics: kernels in cells, with their profiles, findings and diagrams below."""
