"""Fourier transforms with cuFFT."""

from __future__ import annotations

from .callbacks import Callback
from .calls import TransformPlan
from .transforms import fft, ifft, irfft, rfft

__all__ = ["Callback", "TransformPlan", "fft", "ifft", "irfft", "rfft"]
