"""Execute a launch: schedule its lanes, move its data, and let the system answer its calls."""
