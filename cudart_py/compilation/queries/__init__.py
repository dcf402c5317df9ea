"""Questions to the compiler about types that mangled names do not tell."""
