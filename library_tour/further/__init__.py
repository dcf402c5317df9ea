"""Further exercises: an easy and a hard one for each of the most important stops, and an easy one for `precision`."""
