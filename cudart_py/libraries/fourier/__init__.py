"""Fourier transforms with cuFFT."""

from __future__ import annotations

from .transforms import fft, ifft, irfft, rfft

__all__ = ["fft", "ifft", "irfft", "rfft"]
