// Fetches of two-dimensional textures: points by number, the nearest element and linear filtering, with
// coordinates within the image, on the edges between its elements and outside.

extern "C" __global__ void sample(cudaTextureObject_t t, const float* x, const float* y, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(t, x[i], y[i]);
}

extern "C" __global__ void sample_pixels(cudaTextureObject_t t, const float* x, const float* y, float4* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float4>(t, x[i], y[i]);
}

extern "C" __global__ void sample_bytes(cudaTextureObject_t t, const float* x, const float* y, unsigned* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<unsigned char>(t, x[i], y[i]);
}
