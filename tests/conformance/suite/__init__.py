"""Shared parts of the conformance tests: cases, their inputs, recording and comparing."""
