"""Checks: what is looked for in launches, copies and fills that hardware does not notice."""
