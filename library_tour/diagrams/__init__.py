"""Diagrams that go with the steps of lessons, made from runs of the stops' kernels."""
