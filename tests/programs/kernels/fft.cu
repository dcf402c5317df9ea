// Fourier transforms of 1,024 complex numbers, one a block of 256 threads.
//
//   fft_1024   five passes of radix 4 after Stockham: a pass leaves its results in the order that the next one reads,
//              so that nothing is put in order at the end. Between passes the numbers go through shared memory

constexpr int POINTS = 1024;

__device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }

// The product of a number and exp(-2 pi i turns).
__device__ float2 turned(float2 a, float turns)
{
    float sine, cosine;
    sincospif(-2.0f * turns, &sine, &cosine);
    return make_float2(a.x * cosine - a.y * sine, a.x * sine + a.y * cosine);
}

extern "C" __global__ void fft_1024(const float2* in, float2* out)
{
    __shared__ float2 line[POINTS];
    const int t = threadIdx.x, quarter = POINTS / 4;
    in += size_t(blockIdx.x) * POINTS;
    out += size_t(blockIdx.x) * POINTS;
    float2 v[4];
    for (int j = 0; j < 4; j++)
        v[j] = in[t + j * quarter];
    for (int length = 1; length < POINTS; length *= 4) {
        int k = t & (length - 1);
        for (int j = 1; j < 4; j++)
            v[j] = turned(v[j], float(j * k) / (4 * length));
        float2 even = v[0] + v[2], odd = v[0] - v[2], sum = v[1] + v[3], difference = v[1] - v[3];
        float2 crossed = make_float2(difference.y, -difference.x);
        int place = (t - k) * 4 + k;
        __syncthreads();
        line[place] = even + sum;
        line[place + length] = odd + crossed;
        line[place + 2 * length] = even - sum;
        line[place + 3 * length] = odd - crossed;
        __syncthreads();
        for (int j = 0; j < 4; j++)
            v[j] = line[t + j * quarter];
    }
    for (int j = 0; j < 4; j++)
        out[t + j * quarter] = v[j];
}
