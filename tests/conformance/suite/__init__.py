"""What the conformance tests share: cases, their inputs, recording and comparing."""
