"""Building blocks of the other packages: checks of arguments, shapes, addresses, and the wording of messages."""
