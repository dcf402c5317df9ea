"""Compilation of CUDA C++ to images and signatures, without a driver: NVRTC, headers, includes, linking, the cache."""
