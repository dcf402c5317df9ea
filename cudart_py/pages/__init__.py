"""Pages of HTML that need nothing else: their skeleton and style, tables, drawings, and pieces for notebooks."""
