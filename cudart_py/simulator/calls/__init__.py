"""Calls: the functions of the driver, under the names and with the parameters of `cuda.bindings.driver`."""
