"""Pages of the tour: those of a run in HTML, and those of the documentation's site in Markdown."""
