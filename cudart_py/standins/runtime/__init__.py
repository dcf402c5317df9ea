"""libcudart: the runtime's functions on those of libcuda, as NVIDIA's runtime has them on its driver.

All functions take C's arguments and return a status. `calls.driver` gives the functions of libcuda in the same form.
"""
