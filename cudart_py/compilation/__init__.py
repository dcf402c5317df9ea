"""From CUDA C++ to images and signatures: NVRTC, headers, includes, linking and the cache, without a driver."""
