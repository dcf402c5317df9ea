// Sums of arrays on several devices; every device gets all the sums.
//
//   add_into      adds a copy of another device's array to the array of this device
//   reduce_peers  one device's share: it reads its part of every array over the links, and writes the sums to all.
//                 Every device adds the arrays in the same order, so the sums do not depend on the device
//
// Counts are in groups of four elements.

extern "C" __global__ void add_into(const float4* x, float4* y, int groups)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < groups; i += gridDim.x * blockDim.x) {
        float4 a = x[i];
        float4 b = y[i];
        y[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
}

// `arrays` holds the addresses of `count` arrays, each on its own device. The part begins at group `first`.
extern "C" __global__ void reduce_peers(const unsigned long long* arrays, int count, int first, int groups)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < groups; i += gridDim.x * blockDim.x) {
        float4 sum = reinterpret_cast<const float4*>(arrays[0])[first + i];
        for (int k = 1; k < count; k++) {
            float4 other = reinterpret_cast<const float4*>(arrays[k])[first + i];
            sum = make_float4(sum.x + other.x, sum.y + other.y, sum.z + other.z, sum.w + other.w);
        }
        for (int k = 0; k < count; k++)
            reinterpret_cast<float4*>(arrays[k])[first + i] = sum;
    }
}
