"""Checks for mistakes in launches, copies and fills that hardware does not report."""
