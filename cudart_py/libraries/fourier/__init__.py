"""Fourier transforms with cuFFT."""

from __future__ import annotations

from .calls import TransformPlan
from .transforms import fft, ifft, irfft, rfft

__all__ = ["TransformPlan", "fft", "ifft", "irfft", "rfft"]
