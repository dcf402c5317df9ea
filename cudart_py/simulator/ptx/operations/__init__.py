"""Compute what instructions compute, on NumPy arrays alone: nothing here knows programs."""
