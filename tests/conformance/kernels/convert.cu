// Conversions: float to integer in four roundings (saturating; NaN by the manual's rule), rounding to an
// integer in floating point (rni goes to even), integer to float, between widths of both, half, bfloat, tf32.
#include "rows.cuh"

#define TO_INT32(name, X) UNARY_AS(name, int, "=r", X)
#define TO_INT64(name, X) UNARY_AS(name, long long, "=l", X)
#define TO_FLOAT(name, X) UNARY_AS(name, float, "=f", X)
#define TO_DOUBLE(name, X) UNARY_AS(name, double, "=d", X)
#define TO_HALF(name, X, tidy)                                  \
    {                                                           \
        unsigned short r;                                       \
        asm volatile(name " %0, %1;" : "=h"(r) : X(x));         \
        PUT(tidy(r));                                           \
    }

extern "C" __global__ void float_to_int32(const float* a, int* out, int n) {
    LANE
    const float x = a[i];
    TO_INT32("cvt.rni.s32.f32", "f") TO_INT32("cvt.rzi.s32.f32", "f") TO_INT32("cvt.rmi.s32.f32", "f")
    TO_INT32("cvt.rpi.s32.f32", "f") TO_INT32("cvt.rni.ftz.s32.f32", "f")
    TO_INT32("cvt.rzi.ftz.s32.f32", "f") TO_INT32("cvt.rmi.ftz.s32.f32", "f")
    TO_INT32("cvt.rpi.ftz.s32.f32", "f") TO_INT32("cvt.rni.u32.f32", "f") TO_INT32("cvt.rzi.u32.f32", "f")
    TO_INT32("cvt.rmi.u32.f32", "f") TO_INT32("cvt.rpi.u32.f32", "f") TO_INT32("cvt.rni.ftz.u32.f32", "f")
    TO_INT32("cvt.rzi.ftz.u32.f32", "f") TO_INT32("cvt.rmi.ftz.u32.f32", "f")
    TO_INT32("cvt.rpi.ftz.u32.f32", "f") TO_INT32("cvt.rzi.s16.f32", "f") TO_INT32("cvt.rzi.u16.f32", "f")
    TO_INT32("cvt.rzi.s8.f32", "f") TO_INT32("cvt.rzi.u8.f32", "f") TO_INT32("cvt.rni.s8.f32", "f")
    TO_INT32("cvt.rpi.sat.u8.f32", "f")
}

extern "C" __global__ void float_to_int64(const float* a, long long* out, int n) {
    LANE
    const float x = a[i];
    TO_INT64("cvt.rni.s64.f32", "f") TO_INT64("cvt.rzi.s64.f32", "f") TO_INT64("cvt.rmi.s64.f32", "f")
    TO_INT64("cvt.rpi.s64.f32", "f") TO_INT64("cvt.rni.u64.f32", "f") TO_INT64("cvt.rzi.u64.f32", "f")
    TO_INT64("cvt.rmi.u64.f32", "f") TO_INT64("cvt.rpi.u64.f32", "f") TO_INT64("cvt.rzi.ftz.s64.f32", "f")
}

extern "C" __global__ void double_to_int32(const double* a, int* out, int n) {
    LANE
    const double x = a[i];
    TO_INT32("cvt.rni.s32.f64", "d") TO_INT32("cvt.rzi.s32.f64", "d") TO_INT32("cvt.rmi.s32.f64", "d")
    TO_INT32("cvt.rpi.s32.f64", "d") TO_INT32("cvt.rni.u32.f64", "d") TO_INT32("cvt.rzi.u32.f64", "d")
    TO_INT32("cvt.rmi.u32.f64", "d") TO_INT32("cvt.rpi.u32.f64", "d") TO_INT32("cvt.rzi.s16.f64", "d")
    TO_INT32("cvt.rzi.u8.f64", "d")
}

extern "C" __global__ void double_to_int64(const double* a, long long* out, int n) {
    LANE
    const double x = a[i];
    TO_INT64("cvt.rni.s64.f64", "d") TO_INT64("cvt.rzi.s64.f64", "d") TO_INT64("cvt.rmi.s64.f64", "d")
    TO_INT64("cvt.rpi.s64.f64", "d") TO_INT64("cvt.rni.u64.f64", "d") TO_INT64("cvt.rzi.u64.f64", "d")
    TO_INT64("cvt.rmi.u64.f64", "d") TO_INT64("cvt.rpi.u64.f64", "d")
}

extern "C" __global__ void float_to_float(const float* a, float* out, int n) {
    LANE
    const float x = a[i];
    TO_FLOAT("cvt.rni.f32.f32", "f") TO_FLOAT("cvt.rzi.f32.f32", "f") TO_FLOAT("cvt.rmi.f32.f32", "f")
    TO_FLOAT("cvt.rpi.f32.f32", "f") TO_FLOAT("cvt.rni.ftz.f32.f32", "f")
    TO_FLOAT("cvt.rzi.ftz.f32.f32", "f") TO_FLOAT("cvt.rmi.ftz.f32.f32", "f")
    TO_FLOAT("cvt.rpi.ftz.f32.f32", "f") TO_FLOAT("cvt.rni.sat.f32.f32", "f")
    TO_FLOAT("cvt.rzi.sat.f32.f32", "f") TO_FLOAT("cvt.rmi.sat.f32.f32", "f")
    TO_FLOAT("cvt.rpi.sat.f32.f32", "f") TO_FLOAT("cvt.sat.f32.f32", "f")
    TO_FLOAT("cvt.ftz.sat.f32.f32", "f") TO_FLOAT("cvt.ftz.f32.f32", "f")
}

extern "C" __global__ void double_to_float(const double* a, float* out, int n) {
    LANE
    const double x = a[i];
    TO_FLOAT("cvt.rn.f32.f64", "d") TO_FLOAT("cvt.rz.f32.f64", "d") TO_FLOAT("cvt.rm.f32.f64", "d")
    TO_FLOAT("cvt.rp.f32.f64", "d") TO_FLOAT("cvt.rn.ftz.f32.f64", "d") TO_FLOAT("cvt.rz.ftz.f32.f64", "d")
    TO_FLOAT("cvt.rm.ftz.f32.f64", "d") TO_FLOAT("cvt.rp.ftz.f32.f64", "d")
    TO_FLOAT("cvt.rn.sat.f32.f64", "d") TO_FLOAT("cvt.rz.sat.f32.f64", "d")
    TO_FLOAT("cvt.rm.sat.f32.f64", "d") TO_FLOAT("cvt.rp.sat.f32.f64", "d")
}

extern "C" __global__ void double_to_double(const double* a, double* out, int n) {
    LANE
    const double x = a[i];
    TO_DOUBLE("cvt.rni.f64.f64", "d") TO_DOUBLE("cvt.rzi.f64.f64", "d") TO_DOUBLE("cvt.rmi.f64.f64", "d")
    TO_DOUBLE("cvt.rpi.f64.f64", "d") TO_DOUBLE("cvt.sat.f64.f64", "d")
    TO_DOUBLE("cvt.rni.sat.f64.f64", "d")
}

extern "C" __global__ void float_to_double(const float* a, double* out, int n) {
    LANE
    const float x = a[i];
    TO_DOUBLE("cvt.f64.f32", "f") TO_DOUBLE("cvt.ftz.f64.f32", "f") TO_DOUBLE("cvt.sat.f64.f32", "f")
}

extern "C" __global__ void int32_to_float(const int* a, float* out, int n) {
    LANE
    const int x = a[i];
    TO_FLOAT("cvt.rn.f32.s32", "r") TO_FLOAT("cvt.rz.f32.s32", "r") TO_FLOAT("cvt.rm.f32.s32", "r")
    TO_FLOAT("cvt.rp.f32.s32", "r") TO_FLOAT("cvt.rn.f32.u32", "r") TO_FLOAT("cvt.rz.f32.u32", "r")
    TO_FLOAT("cvt.rm.f32.u32", "r") TO_FLOAT("cvt.rp.f32.u32", "r") TO_FLOAT("cvt.rn.f32.s16", "r")
    TO_FLOAT("cvt.rn.f32.u16", "r") TO_FLOAT("cvt.rn.f32.s8", "r") TO_FLOAT("cvt.rn.f32.u8", "r")
    TO_FLOAT("cvt.rn.sat.f32.s32", "r")
}

extern "C" __global__ void int64_to_float(const long long* a, float* out, int n) {
    LANE
    const long long x = a[i];
    TO_FLOAT("cvt.rn.f32.s64", "l") TO_FLOAT("cvt.rz.f32.s64", "l") TO_FLOAT("cvt.rm.f32.s64", "l")
    TO_FLOAT("cvt.rp.f32.s64", "l") TO_FLOAT("cvt.rn.f32.u64", "l") TO_FLOAT("cvt.rz.f32.u64", "l")
    TO_FLOAT("cvt.rm.f32.u64", "l") TO_FLOAT("cvt.rp.f32.u64", "l")
}

extern "C" __global__ void int32_to_double(const int* a, double* out, int n) {
    LANE
    const int x = a[i];
    TO_DOUBLE("cvt.rn.f64.s32", "r") TO_DOUBLE("cvt.rn.f64.u32", "r") TO_DOUBLE("cvt.rn.f64.s16", "r")
    TO_DOUBLE("cvt.rn.f64.u8", "r")
}

extern "C" __global__ void int64_to_double(const long long* a, double* out, int n) {
    LANE
    const long long x = a[i];
    TO_DOUBLE("cvt.rn.f64.s64", "l") TO_DOUBLE("cvt.rz.f64.s64", "l") TO_DOUBLE("cvt.rm.f64.s64", "l")
    TO_DOUBLE("cvt.rp.f64.s64", "l") TO_DOUBLE("cvt.rn.f64.u64", "l") TO_DOUBLE("cvt.rz.f64.u64", "l")
    TO_DOUBLE("cvt.rm.f64.u64", "l") TO_DOUBLE("cvt.rp.f64.u64", "l")
}

extern "C" __global__ void int32_to_int32(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    TO_INT32("cvt.s32.s8", "r") TO_INT32("cvt.u32.u8", "r") TO_INT32("cvt.s32.s16", "r")
    TO_INT32("cvt.u32.u16", "r") TO_INT32("cvt.s8.s32", "r") TO_INT32("cvt.u8.u32", "r")
    TO_INT32("cvt.s16.s32", "r") TO_INT32("cvt.u16.u32", "r") TO_INT32("cvt.sat.s8.s32", "r")
    TO_INT32("cvt.sat.u8.s32", "r") TO_INT32("cvt.sat.s16.s32", "r") TO_INT32("cvt.sat.u16.s32", "r")
    TO_INT32("cvt.sat.u32.s32", "r") TO_INT32("cvt.sat.s32.u32", "r") TO_INT32("cvt.sat.s8.u32", "r")
    TO_INT32("cvt.sat.u8.u32", "r")
}

extern "C" __global__ void int32_to_int64(const int* a, long long* out, int n) {
    LANE
    const int x = a[i];
    TO_INT64("cvt.s64.s32", "r") TO_INT64("cvt.u64.u32", "r") TO_INT64("cvt.s64.s8", "r")
    TO_INT64("cvt.u64.u16", "r") TO_INT64("cvt.sat.u64.s32", "r")
}

extern "C" __global__ void int64_to_int32(const long long* a, int* out, int n) {
    LANE
    const long long x = a[i];
    TO_INT32("cvt.u32.u64", "l") TO_INT32("cvt.s32.s64", "l") TO_INT32("cvt.sat.s32.s64", "l")
    TO_INT32("cvt.sat.u32.s64", "l") TO_INT32("cvt.sat.u32.u64", "l") TO_INT32("cvt.sat.s32.u64", "l")
    TO_INT32("cvt.s16.s64", "l") TO_INT32("cvt.sat.u8.s64", "l")
}

#define PACK(name)                                                                                \
    {                                                                                             \
        int r;                                                                                    \
        asm volatile(name " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));                 \
        PUT(r);                                                                                   \
    }
#define PACK2(name) BINARY_AS(name, int, "=r", "r", "r")

extern "C" __global__ void packed(const int* a, const int* b, const int* c, int* out, int n) {
    LANE
    const int x = a[i], y = b[i], z = c[i];
    PACK2("cvt.pack.sat.s16.s32") PACK2("cvt.pack.sat.u16.s32")
    PACK("cvt.pack.sat.s8.s32.b32") PACK("cvt.pack.sat.u8.s32.b32")
}

extern "C" __global__ void float_to_half(const float* a, unsigned short* out, int n) {
    LANE
    const float x = a[i];
    TO_HALF("cvt.rn.f16.f32", "f", one_nan_f16)
    TO_HALF("cvt.rz.f16.f32", "f", one_nan_f16)
    TO_HALF("cvt.rn.ftz.f16.f32", "f", one_nan_f16)
    TO_HALF("cvt.rn.sat.f16.f32", "f", one_nan_f16)
    TO_HALF("cvt.rn.bf16.f32", "f", one_nan_bf16)
    TO_HALF("cvt.rz.bf16.f32", "f", one_nan_bf16)
    TO_HALF("cvt.rn.relu.bf16.f32", "f", one_nan_bf16)
}

extern "C" __global__ void double_to_half(const double* a, unsigned short* out, int n) {
    LANE
    const double x = a[i];
    TO_HALF("cvt.rn.f16.f64", "d", one_nan_f16)
    TO_HALF("cvt.rz.f16.f64", "d", one_nan_f16)
    TO_HALF("cvt.rm.f16.f64", "d", one_nan_f16)
    TO_HALF("cvt.rp.f16.f64", "d", one_nan_f16)
}

extern "C" __global__ void int32_to_half(const int* a, unsigned short* out, int n) {
    LANE
    const int x = a[i];
    TO_HALF("cvt.rn.f16.s32", "r", one_nan_f16)
    TO_HALF("cvt.rz.f16.u32", "r", one_nan_f16)
    TO_HALF("cvt.rp.f16.s16", "r", one_nan_f16)
    TO_HALF("cvt.rn.f16.u8", "r", one_nan_f16)
    TO_HALF("cvt.rn.bf16.s32", "r", one_nan_bf16)
}

#define ROUND_HALF(name) TO_HALF(name, "h", one_nan_f16)

extern "C" __global__ void half_to_half(const unsigned short* a, unsigned short* out, int n) {
    LANE
    const unsigned short x = a[i];
    ROUND_HALF("cvt.rni.f16.f16") ROUND_HALF("cvt.rzi.f16.f16") ROUND_HALF("cvt.rmi.f16.f16")
    ROUND_HALF("cvt.rpi.f16.f16") ROUND_HALF("cvt.sat.f16.f16")
}

extern "C" __global__ void half_to_float(const unsigned short* a, float* out, int n) {
    LANE
    const unsigned short x = a[i];
    TO_FLOAT("cvt.f32.f16", "h") TO_FLOAT("cvt.ftz.f32.f16", "h") TO_FLOAT("cvt.sat.f32.f16", "h") TO_FLOAT("cvt.f32.bf16", "h")
}

extern "C" __global__ void half_to_double(const unsigned short* a, double* out, int n) {
    LANE
    const unsigned short x = a[i];
    TO_DOUBLE("cvt.f64.f16", "h")
}

extern "C" __global__ void half_to_int(const unsigned short* a, int* out, int n) {
    LANE
    const unsigned short x = a[i];
    TO_INT32("cvt.rzi.s32.f16", "h") TO_INT32("cvt.rni.s32.f16", "h") TO_INT32("cvt.rmi.u32.f16", "h")
    TO_INT32("cvt.rpi.s16.f16", "h") TO_INT32("cvt.rzi.u8.f16", "h")
}

// A pair of halves from two floats, the first in the upper half; tf32 keeps ten bits of the fraction.
#define PAIR(name, tidy)                                                                    \
    {                                                                                       \
        unsigned r;                                                                         \
        asm volatile(name " %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y));                       \
        PUT(tidy(r & 0xffff) | unsigned(tidy(r >> 16)) << 16);                              \
    }

extern "C" __global__ void float_pairs(const float* a, const float* b, unsigned* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    PAIR("cvt.rn.f16x2.f32", one_nan_f16)
    PAIR("cvt.rz.f16x2.f32", one_nan_f16)
    PAIR("cvt.rn.relu.f16x2.f32", one_nan_f16)
    PAIR("cvt.rn.bf16x2.f32", one_nan_bf16)
    PAIR("cvt.rz.bf16x2.f32", one_nan_bf16)
}

// Only finite values: the bits of a tf32 NaN are open.
extern "C" __global__ void tensor_float(const float* a, unsigned* out, int n) {
    LANE
    const float x = fabsf(a[i]) < 1e38f ? a[i] : 1.0f;
    UNARY_AS("cvt.rna.tf32.f32", unsigned, "=r", "f")
}
