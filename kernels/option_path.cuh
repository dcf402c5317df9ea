// Paths of the price of a share, ds = s (r dt + sigma sqrt(dt) z) with z standard normal, and the payoff of a call
// option.
//
// The random numbers come from Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011), a function of a counter and a key:
// it has no state in memory, and the numbers of a path follow from its index. Ten rounds give four integers, and the
// Box-Muller transform turns them into four normal numbers, one for each of four steps.

#pragma once

// The constants of all steps.
struct Option {
    float start, strike;
    float drift, scale;  // per step: Euler 1 + r dt, LogSteps (r - sigma^2 / 2) dt; both sigma sqrt(dt)
    int steps;           // a multiple of four
};

// The low and the high half of a product in one instruction, which the compiler does not use for constants above 2^31.
__device__ uint2 product(unsigned a, unsigned b)
{
    unsigned long long whole;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(whole) : "r"(a), "r"(b));
    return make_uint2(unsigned(whole), unsigned(whole >> 32));
}

__device__ uint4 philox(uint4 counter, unsigned key_x, unsigned key_y)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint2 a = product(0xD2511F53, counter.x);
        uint2 b = product(0xCD9E8D57, counter.z);
        counter = make_uint4(b.y ^ counter.y ^ key_x, b.x, a.y ^ counter.w ^ key_y, a.x);
        key_x += 0x9E3779B9;
        key_y += 0xBB67AE85;
    }
    return counter;
}

// 23 random bits as the fraction of a float in [1, 2), made by bit operations without a conversion.
__device__ float in_one_to_two(unsigned bits)
{
    return __uint_as_float((bits & 0x007fffff) | 0x3f800000);
}

// Two normally distributed numbers from two integers, which give the radius and the angle of a point in the plane.
__device__ float2 normal_pair(unsigned a, unsigned b)
{
    float radius = sqrtf(-1.3862944f * log2f(2.0f - in_one_to_two(a)));  // -2 ln of a number in (0, 1]
    float sine, cosine;
    sincosf(6.2831853f * in_one_to_two(b), &sine, &cosine);  // an angle in [2 pi, 4 pi) has the same sine and cosine
    return make_float2(radius * cosine, radius * sine);
}

struct Euler {
    static __device__ float start(const Option& option) { return option.start; }
    static __device__ float step(float s, const Option& option, float z) { return s * (option.drift + option.scale * z); }
    static __device__ float end(float s, const Option&) { return s; }
};

struct LogSteps {
    static __device__ float start(const Option&) { return 0.0f; }
    static __device__ float step(float x, const Option& option, float z) { return x + (option.drift + option.scale * z); }
    static __device__ float end(float x, const Option& option) { return option.start * expf(x); }
};

// The payoff at the end of the path with this index.
template <class Scheme>
__device__ float payoff(const Option& option, unsigned path, unsigned long long seed)
{
    float s = Scheme::start(option);
    for (int step = 0; step < option.steps; step += 4) {
        uint4 random = philox(make_uint4(path, step, 0, 0), unsigned(seed), unsigned(seed >> 32));
        float2 first = normal_pair(random.x, random.y);
        float2 second = normal_pair(random.z, random.w);
        s = Scheme::step(s, option, first.x);
        s = Scheme::step(s, option, first.y);
        s = Scheme::step(s, option, second.x);
        s = Scheme::step(s, option, second.y);
    }
    return fmaxf(Scheme::end(s, option) - option.strike, 0.0f);
}
