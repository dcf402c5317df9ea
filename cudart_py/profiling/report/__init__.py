"""The output formats of a profile: tables and annotated source as text, an HTML page, and data for JSON."""
