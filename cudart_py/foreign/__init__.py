"""Arrays and addresses from other sources: GPU libraries, NumPy, the driver."""
