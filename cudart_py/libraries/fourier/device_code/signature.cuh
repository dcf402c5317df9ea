// Checks that a callback has the parameters and the result that cuFFT expects, which its linker does not check fully.

#pragma once

template <class Left, class Right> struct FftSame {
    static constexpr bool value = false;
};
template <class Type> struct FftSame<Type, Type> {
    static constexpr bool value = true;
};

#define FFT_TEXT(token) #token
#define FFT_QUOTED(token) FFT_TEXT(token)

#ifdef FFT_LOADS
using FftSignature = FFT_ELEMENT (*)(void*, unsigned long long, void*, void*);
static_assert(FftSame<decltype(&FFT_CALLBACK), FftSignature>::value,
              "a callback for load= takes (void* x, unsigned long long i, void* data, void* shared) and returns "
              FFT_QUOTED(FFT_ELEMENT) ", the type of the elements of 'x'");
#else
using FftSignature = void (*)(void*, unsigned long long, FFT_ELEMENT, void*, void*);
static_assert(FftSame<decltype(&FFT_CALLBACK), FftSignature>::value,
              "a callback for store= takes (void* out, unsigned long long i, " FFT_QUOTED(FFT_ELEMENT)
              " element, void* data, void* shared), with the type of the elements of 'out'");
#endif
