// Accesses through textures and surfaces beside writes of the same memory: mistakes (BUG) and correct kernels.
typedef cudaTextureObject_t Texture;
typedef cudaSurfaceObject_t Surface;
// A texture and a pointer to the same memory, a texture and a surface of the same array, and memory for results.
#define ARGUMENTS Texture t, float *v, Texture a, Surface s, float *out, int n

__device__ float fetch(Texture t, int x) { return tex2D<float>(t, x + 0.5f, 0.5f); }

// Each thread reads and then writes its own element.
extern "C" __global__ void own(ARGUMENTS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = fetch(t, i);
    v[i] = value + 1;
}
extern "C" __global__ void next(ARGUMENTS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = fetch(t, (i + 1) % n);
    v[i] = value + 1;  // BUG next
}
// Correct for a single block only.
extern "C" __global__ void read_then_write(ARGUMENTS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = fetch(t, (i + 1) % n);
    __syncthreads();
    v[i] = value + 1;  // BUG read_then_write
}
// No barrier makes a write visible to a later fetch of the same launch.
extern "C" __global__ void write_then_read(ARGUMENTS)
{
    int i = threadIdx.x;
    v[i] = i;
    __syncthreads();
    out[i] = fetch(t, (i + 1) % n);  // BUG write_then_read
}
extern "C" __global__ void own_written(ARGUMENTS)
{
    int i = threadIdx.x;
    v[i] = i;
    out[i] = fetch(t, i);  // BUG own_written
}
// With linear filtering, a fetch also reads the neighbours.
extern "C" __global__ void filtered(ARGUMENTS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = tex2D<float>(t, i + 0.75f, 0.5f);
    v[i] = value + 1;  // BUG filtered
}

extern "C" __global__ void own_pixel(ARGUMENTS)
{
    int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    surf2Dwrite(surf2Dread<float>(s, x, 0) + 1, s, x, 0);
}
extern "C" __global__ void next_pixel(ARGUMENTS)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = surf2Dread<float>(s, 4 * ((i + 1) % n), 0);
    surf2Dwrite(value + 1, s, 4 * i, 0);  // BUG next_pixel
}
extern "C" __global__ void same_pixel(ARGUMENTS)
{
    surf2Dwrite((float)threadIdx.x, s, 0, 0);  // BUG same_pixel
}
extern "C" __global__ void written_pixel(ARGUMENTS)
{
    int i = threadIdx.x;
    surf2Dwrite((float)i, s, 4 * i, 0);
    __syncthreads();
    out[i] = surf2Dread<float>(s, 4 * ((i + 1) % n), 0);  // BUG written_pixel
}
extern "C" __global__ void pixel_and_texel(ARGUMENTS)
{
    int i = threadIdx.x;
    surf2Dwrite((float)i, s, 4 * i, 0);
    __syncthreads();
    out[i] = fetch(a, (i + 1) % n);  // BUG pixel_and_texel
}
// Accesses outside of the surface read 0 and write nothing.
extern "C" __global__ void outside(ARGUMENTS)
{
    out[threadIdx.x] = surf2Dread<float>(s, 4 * n, 0, cudaBoundaryModeZero);
    surf2Dwrite((float)threadIdx.x, s, 4 * n, 0, cudaBoundaryModeZero);
}

extern "C" __global__ void read_texels(ARGUMENTS) { out[threadIdx.x] = fetch(t, threadIdx.x); }
extern "C" __global__ void read_array(ARGUMENTS) { out[threadIdx.x] = fetch(a, threadIdx.x); }
extern "C" __global__ void read_pixels(ARGUMENTS)
{
    out[threadIdx.x] = surf2Dread<float>(s, 4 * threadIdx.x, 0);
}
extern "C" __global__ void write_pixels(ARGUMENTS)
{
    surf2Dwrite(2.0f * threadIdx.x + 3, s, 4 * threadIdx.x, 0);
}
extern "C" __global__ void write_elements(ARGUMENTS) { v[threadIdx.x] = 2 * threadIdx.x + 3; }
