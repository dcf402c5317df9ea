"""Shared parts of the conformance tests: cases, inputs, and functions to run and compare them."""
