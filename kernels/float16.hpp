// f32 to the bits of f16 and bf16, rounded to nearest even, as F16C, NEON and torch do.
#pragma once

#include <cstdint>
#include <cstring>

namespace compass_edge {

inline std::uint32_t float_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline std::uint16_t to_f16(float value) {
    const std::uint32_t bits = float_bits(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below half of the least subnormal
    const std::uint32_t exponent = magnitude >> 23;
    std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    // A normal half keeps 10 of 23 fraction bits; below 2^-14 one bit fewer for each power of two.
    const std::uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
    const std::uint32_t kept = mantissa >> dropped;
    const std::uint32_t rest = mantissa & ((1u << dropped) - 1);
    const std::uint32_t half = 1u << (dropped - 1);
    const std::uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
    // `rounded` carries the implicit bit, which raises the exponent field by one: hence 113 and not 112.
    const std::uint32_t exponent_field = exponent >= 113 ? (exponent - 113) << 10 : 0;
    return static_cast<std::uint16_t>(sign | (exponent_field + rounded));
}

inline std::uint16_t to_bf16(float value) {
    const std::uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace compass_edge
