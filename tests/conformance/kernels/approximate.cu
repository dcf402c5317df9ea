// Approximate functions: the hardware's own tables, within the bounds that the PTX manual gives.
#include "rows.cuh"

#define UNARY(name) UNARY_AS(name, float, "=f", "f")
#define BINARY(name) BINARY_AS(name, float, "=f", "f", "f")

extern "C" __global__ void functions(const float* a, float* out, int n) {
    LANE
    const float x = a[i];
    UNARY("rcp.approx.f32") UNARY("rcp.approx.ftz.f32") UNARY("sqrt.approx.f32") UNARY("sqrt.approx.ftz.f32")
    UNARY("rsqrt.approx.f32") UNARY("rsqrt.approx.ftz.f32") UNARY("lg2.approx.f32") UNARY("lg2.approx.ftz.f32")
    UNARY("ex2.approx.f32") UNARY("ex2.approx.ftz.f32") UNARY("tanh.approx.f32")
}

// Angles between -pi and pi, where the manual's bound is absolute, and the special values.
extern "C" __global__ void angles(const float* a, float* out, int n) {
    LANE
    const float x = a[i];
    UNARY("sin.approx.f32") UNARY("sin.approx.ftz.f32") UNARY("cos.approx.f32") UNARY("cos.approx.ftz.f32")
}

extern "C" __global__ void quotients(const float* a, const float* b, float* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    BINARY("div.approx.f32") BINARY("div.approx.ftz.f32") BINARY("div.full.f32") BINARY("div.full.ftz.f32")
}

extern "C" __global__ void doubles(const double* a, double* out, int n) {
    LANE
    const double x = a[i];
    UNARY_AS("rcp.approx.ftz.f64", double, "=d", "d")
    UNARY_AS("rsqrt.approx.ftz.f64", double, "=d", "d")
    UNARY_AS("rsqrt.approx.f64", double, "=d", "d")
}

#define HALF(name)                                              \
    {                                                           \
        unsigned short r;                                       \
        asm volatile(name " %0, %1;" : "=h"(r) : "h"(x));       \
        PUT(r);                                                 \
    }
#define BFLOAT(name)                                            \
    {                                                           \
        unsigned short r;                                       \
        asm volatile(name " %0, %1;" : "=h"(r) : "h"(x));       \
        PUT(__uint_as_float(unsigned(r) << 16));                \
    }

extern "C" __global__ void halves(const unsigned short* a, unsigned short* out, int n) {
    LANE
    const unsigned short x = a[i];
    HALF("ex2.approx.f16") HALF("tanh.approx.f16")
}

// Each result widened to single precision.
extern "C" __global__ void bfloats(const unsigned short* a, float* out, int n) {
    LANE
    const unsigned short x = a[i];
    BFLOAT("ex2.approx.ftz.bf16") BFLOAT("tanh.approx.bf16")
}

// What the C++ functions compile to: polynomials around those instructions.
extern "C" __global__ void math(const float* a, float* out, int n) {
    LANE
    const float x = a[i], positive = fabsf(x);
    VALUE("sinf", sinf(x)) VALUE("cosf", cosf(x)) VALUE("tanf", tanf(x)) VALUE("expf", expf(x))
    VALUE("exp2f", exp2f(x)) VALUE("logf", logf(positive)) VALUE("log2f", log2f(positive))
    VALUE("powf", powf(positive, 1.7f)) VALUE("tanhf", tanhf(x)) VALUE("erff", erff(x))
    VALUE("atan2f", atan2f(x, 3.0f)) VALUE("cbrtf", cbrtf(x)) VALUE("rsqrtf", rsqrtf(positive))
    VALUE("hypotf", hypotf(x, 2.0f)) VALUE("fmodf", fmodf(x, 1.25f)) VALUE("roundf", roundf(x))
    VALUE("normcdff", normcdff(x))
}

extern "C" __global__ void double_math(const double* a, double* out, int n) {
    LANE
    const double x = a[i], positive = fabs(x);
    VALUE("sin", sin(x)) VALUE("cos", cos(x)) VALUE("exp", exp(x)) VALUE("log", log(positive))
    VALUE("pow", pow(positive, 1.7)) VALUE("tanh", tanh(x)) VALUE("erf", erf(x)) VALUE("cbrt", cbrt(x))
    VALUE("rsqrt", rsqrt(positive)) VALUE("fmod", fmod(x, 1.25))
}
