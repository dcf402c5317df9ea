// SHA-256 of short messages: a text of up to 47 bytes, which all share, and a number of 8 bytes behind it.
//
//   sha256_numbers   one message a thread. The message fills one block of 64 bytes with its end and its length

// With ROLLED, the compiler unrolls no loop, so that the kernel is short, and quick to translate.
#ifdef ROLLED
#define LOOP _Pragma("unroll 1") for
#else
#define LOOP for
#endif

__constant__ unsigned ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

__device__ unsigned rotated(unsigned word, int bits) { return __funnelshift_r(word, word, bits); }

extern "C" __global__ void sha256_numbers(
    const unsigned char* text, int length, unsigned long long first, unsigned* digests)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long number = first + i;
    unsigned char message[64];
    LOOP (int j = 0; j < 64; j++)
        message[j] = j < length ? text[j] : j < length + 8 ? (unsigned char)(number >> 8 * (j - length)) : 0;
    message[length + 8] = 0x80;
    message[62] = (length + 8) * 8 >> 8;
    message[63] = (unsigned char)((length + 8) * 8);

    unsigned words[64];
    LOOP (int j = 0; j < 16; j++)
        words[j] = message[4 * j] << 24 | message[4 * j + 1] << 16 | message[4 * j + 2] << 8 | message[4 * j + 3];
    LOOP (int j = 16; j < 64; j++) {
        unsigned early = words[j - 15], late = words[j - 2];
        words[j] = words[j - 16] + (rotated(early, 7) ^ rotated(early, 18) ^ early >> 3)
                   + words[j - 7] + (rotated(late, 17) ^ rotated(late, 19) ^ late >> 10);
    }
    const unsigned start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    unsigned a = start[0], b = start[1], c = start[2], d = start[3];
    unsigned e = start[4], f = start[5], g = start[6], h = start[7];
    LOOP (int j = 0; j < 64; j++) {
        unsigned one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + (e & f ^ ~e & g) + ROUNDS[j] + words[j];
        unsigned two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + (a & b ^ a & c ^ b & c);
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    unsigned end[8] = {a, b, c, d, e, f, g, h};
    LOOP (int j = 0; j < 8; j++)
        digests[8 * i + j] = start[j] + end[j];
}
