"""Self-contained HTML pages: their skeleton and style, tables, drawings, and pieces for notebooks."""
