"""Calls that create, instantiate and launch graphs, or capture streams into them."""
