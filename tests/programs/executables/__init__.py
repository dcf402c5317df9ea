"""Unmodified programs of public suites, built by nvcc and run by `cudart-py run`."""
