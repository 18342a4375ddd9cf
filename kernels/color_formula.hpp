// The arithmetic of Y'CbCr to R'G'B', defined once for scalar, SIMD and CUDA.
//
// Sums are kept in 1/64 of a level in 16 bits. A product is rounded as pmulhrsw and sqrdmulh round it, so that every
// instruction set gives the same bits; the result is within 0.05 of a level of the exact formula before rounding.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define COMPASS_EDGE_HOST_DEVICE __host__ __device__
#else
#define COMPASS_EDGE_HOST_DEVICE
#endif

namespace compass_edge {

// luma multiplies Y << 7 and is in 1/2^14; the others multiply (C - 128) << 8 and are in 1/2^13.
// bias holds the black level and the half level that makes the last shift round.
struct ColorCoefficients {
    std::int16_t luma, bias, red_v, green_u, green_v, blue_u;
};

struct Rgb {
    std::uint8_t red, green, blue;
};

// Internal linkage: these headers are compiled with several instruction sets, and the linker must not mix them.
namespace {

COMPASS_EDGE_HOST_DEVICE inline int rounded_product(int a, int b) { return (a * b + 0x4000) >> 15; }

COMPASS_EDGE_HOST_DEVICE inline std::uint8_t to_level(int sixty_fourths) {
    const int level = sixty_fourths >> 6;
    return static_cast<std::uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
}

COMPASS_EDGE_HOST_DEVICE inline std::uint8_t luma_to_gray(int y, const ColorCoefficients& c) {
    return to_level(rounded_product(y << 7, c.luma) + c.bias);
}

COMPASS_EDGE_HOST_DEVICE inline Rgb yuv_to_rgb(int y, int u, int v, const ColorCoefficients& c) {
    const int luma = rounded_product(y << 7, c.luma) + c.bias;
    const int cb = (u - 128) * 256, cr = (v - 128) * 256;
    return {to_level(luma + rounded_product(cr, c.red_v)),
            to_level(luma + rounded_product(cb, c.green_u) + rounded_product(cr, c.green_v)),
            to_level(luma + rounded_product(cb, c.blue_u))};
}

}  // namespace
}  // namespace compass_edge
