"""Further exercises: an easy and a hard one of each stop that matters most, and an easy one of `precision`."""
