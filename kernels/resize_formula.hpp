// The arithmetic of the 8-bit resize, defined once for scalar, SIMD and CUDA: 16-bit weights, 32-bit sums.
#pragma once

#include <cstdint>

#include "kernels/color_formula.hpp"

namespace compass_edge {
namespace {

// What a sum starts from, so that the last shift rounds to nearest.
COMPASS_EDGE_HOST_DEVICE inline std::int32_t half_unit(int precision) { return 1 << (precision - 1); }

COMPASS_EDGE_HOST_DEVICE inline std::uint8_t to_pixel(std::int32_t sum, int precision) {
    const std::int32_t level = sum >> precision;
    return static_cast<std::uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
}

}  // namespace
}  // namespace compass_edge
