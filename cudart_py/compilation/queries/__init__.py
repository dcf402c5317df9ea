"""Queries to the compiler for types that mangled names do not contain."""
