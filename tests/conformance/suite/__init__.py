"""What the conformance tests share: cases, their inputs, the random kernels, recording and comparing."""
