"""The tour's pages: HTML pages of a run, and Markdown pages of the documentation site."""
