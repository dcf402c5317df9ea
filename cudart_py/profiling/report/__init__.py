"""The forms that a profile is written in: tables and source as text, a page of HTML, data for JSON."""
