// Fetches of textures of CUDA arrays, of one to three dimensions and of layers.

extern "C" __global__ void sample_1d(cudaTextureObject_t t, const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(t, x[i]);
}

extern "C" __global__ void sample_2d(cudaTextureObject_t t, const float* x, const float* y, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(t, x[i], y[i]);
}

extern "C" __global__ void sample_3d(cudaTextureObject_t t, const float* x, const float* y, const float* z,
                                     float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<float>(t, x[i], y[i], z[i]);
}

extern "C" __global__ void sample_a1d(cudaTextureObject_t t, const float* x, const int* layer, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1DLayered<float>(t, x[i], layer[i]);
}

extern "C" __global__ void sample_a2d(cudaTextureObject_t t, const float* x, const float* y, const int* layer,
                                      float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2DLayered<float>(t, x[i], y[i], layer[i]);
}
