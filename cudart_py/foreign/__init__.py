"""Arrays and addresses that come from elsewhere: other GPU libraries, NumPy, the driver."""
