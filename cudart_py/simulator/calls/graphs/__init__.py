"""Calls that make, instantiate and launch graphs, or capture streams into them."""
