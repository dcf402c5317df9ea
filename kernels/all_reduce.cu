// Sums of arrays that lie on several devices, which every device gets.
//
//   add_into      add a copy of another device's numbers to this device's
//   reduce_peers  one device's share of all: read its part of every array over the links, and write the sums to all.
//                 Every device adds in the same order, so that all get the same bits
//
// Counts are of groups of four numbers.

extern "C" __global__ void add_into(const float4* x, float4* y, int groups)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < groups; i += gridDim.x * blockDim.x) {
        float4 a = x[i];
        float4 b = y[i];
        y[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
}

// `arrays` are the addresses of `count` arrays, each on a device of its own; the part is the groups from `first` on.
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
