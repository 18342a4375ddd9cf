// aarch64 Advanced SIMD. See simd.hpp; the same names exist for every instruction set.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace compass_edge::neon {
namespace {

constexpr int kBytes = 16;  // of a vector
constexpr int kFloats = 4;  // f32 lanes
using U8 = uint8x16_t;
using I16 = int16x8_t;
using F32 = float32x4_t;

inline U8 load(const std::uint8_t* p) { return vld1q_u8(p); }
inline void store(std::uint8_t* p, U8 v) { vst1q_u8(p, v); }

// 16-bit lanes. high_*: a byte in the upper half of its lane.
inline I16 splat(std::int16_t v) { return vdupq_n_s16(v); }
inline I16 high_even(U8 v) { return vreinterpretq_s16_u16(vshlq_n_u16(vreinterpretq_u16_u8(v), 8)); }
inline I16 high_odd(U8 v) { return vreinterpretq_s16_u16(vandq_u16(vreinterpretq_u16_u8(v), vdupq_n_u16(0xff00))); }
inline I16 high_each(const std::uint8_t* p) { return vreinterpretq_s16_u16(vshll_n_u8(vld1_u8(p), 8)); }
inline I16 halve(I16 v) { return vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s16(v), 1)); }
inline I16 flip_sign(I16 v) { return veorq_s16(v, vdupq_n_s16(INT16_MIN)); }
inline I16 rounded_product(I16 a, I16 b) { return vqrdmulhq_s16(a, b); }
inline I16 add(I16 a, I16 b) { return vqaddq_s16(a, b); }

// >> 6, clamped to a byte, even and odd lanes interleaved.
inline U8 pack_levels(I16 even, I16 odd) {
    const uint8x8x2_t both = vzip_u8(vqshrun_n_s16(even, 6), vqshrun_n_s16(odd, 6));
    return vcombine_u8(both.val[0], both.val[1]);
}

// 3 * kBytes interleaved bytes.
inline void split3(const std::uint8_t* p, U8& r, U8& g, U8& b) {
    const uint8x16x3_t rgb = vld3q_u8(p);
    r = rgb.val[0];
    g = rgb.val[1];
    b = rgb.val[2];
}

// 2 * kBytes of Y0 U Y1 V to kBytes of luma and kBytes of U V pairs.
inline void split_yuyv(const std::uint8_t* p, U8& y, U8& uv) {
    const uint8x16x2_t both = vld2q_u8(p);
    y = both.val[0];
    uv = both.val[1];
}

// Weighted sums of kBytes pixels in 32 bits.
struct Sums {
    int32x4_t part[4];
};
inline int16x4_t pair_weights(const std::int16_t* two) {
    std::int32_t both;
    std::memcpy(&both, two, sizeof both);
    return vreinterpret_s16_s32(vdup_n_s32(both));
}
inline Sums start_sums(std::int32_t v) {
    const int32x4_t all = vdupq_n_s32(v);
    return {{all, all, all, all}};
}
// sums += a * weights[0] + b * weights[1]
inline void accumulate(Sums& sums, U8 a, U8 b, int16x4_t weights) {
    const int16x8_t a0 = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(a)));
    const int16x8_t a1 = vreinterpretq_s16_u16(vmovl_high_u8(a));
    const int16x8_t b0 = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(b)));
    const int16x8_t b1 = vreinterpretq_s16_u16(vmovl_high_u8(b));
    sums.part[0] =
        vmlal_lane_s16(vmlal_lane_s16(sums.part[0], vget_low_s16(a0), weights, 0), vget_low_s16(b0), weights, 1);
    sums.part[1] = vmlal_high_lane_s16(vmlal_high_lane_s16(sums.part[1], a0, weights, 0), b0, weights, 1);
    sums.part[2] =
        vmlal_lane_s16(vmlal_lane_s16(sums.part[2], vget_low_s16(a1), weights, 0), vget_low_s16(b1), weights, 1);
    sums.part[3] = vmlal_high_lane_s16(vmlal_high_lane_s16(sums.part[3], a1, weights, 0), b1, weights, 1);
}
inline uint8x8_t narrow_half(int32x4_t low, int32x4_t high, int32x4_t right) {
    const int16x4_t words = vqmovn_s32(vshlq_s32(low, right));
    return vqmovun_s16(vqmovn_high_s32(words, vshlq_s32(high, right)));
}
inline U8 narrow(const Sums& sums, int shift) {
    const int32x4_t right = vdupq_n_s32(-shift);
    return vcombine_u8(narrow_half(sums.part[0], sums.part[1], right), narrow_half(sums.part[2], sums.part[3], right));
}

// kFloats neighbouring outputs of the horizontal pass, a group of four that reads one 16-byte window.
inline U8 load_windows(const std::uint8_t* src, const std::int32_t* window) { return vld1q_u8(src + window[0]); }
inline int32x4_t start_sum(std::int32_t v) { return vdupq_n_s32(v); }
inline I16 load_weights(const std::int16_t* p) { return vld1q_s16(p); }
inline int32x4_t accumulate(int32x4_t sum, U8 windows, U8 shuffle, I16 weights) {
    const int16x8_t pixels = vreinterpretq_s16_u8(vqtbl1q_u8(windows, shuffle));
    const int32x4_t low = vmull_s16(vget_low_s16(pixels), vget_low_s16(weights));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(pixels, weights)));
}
// The shuffle of the next two inputs. The zero-writing 0x80 stays above 0x0f.
inline U8 advance(U8 shuffle) { return vaddq_u8(shuffle, vdupq_n_u8(2)); }
inline void store_pixels(std::uint8_t* out, int32x4_t sum, int shift) {
    const uint8x8_t bytes = narrow_half(sum, sum, vdupq_n_s32(-shift));
    const std::uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    std::memcpy(out, &four, sizeof four);
}

// f32 lanes.
inline F32 splat(float v) { return vdupq_n_f32(v); }
inline F32 load_floats(const std::uint8_t* p) {
    std::uint32_t four;
    std::memcpy(&four, p, sizeof four);
    const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}
inline F32 subtract(F32 a, F32 b) { return vsubq_f32(a, b); }
inline F32 multiply(F32 a, F32 b) { return vmulq_f32(a, b); }
inline F32 multiply_add(F32 a, F32 b, F32 c) { return vfmaq_f32(c, a, b); }
inline F32 negative_multiply_add(F32 a, F32 b, F32 c) { return vfmsq_f32(c, a, b); }

inline float32x4_t as_f32(F32 v) { return v; }
inline uint16x4_t as_f16(F32 v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
inline uint16x4_t as_bf16(F32 v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vshrn_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
}
inline void store(float* p, float32x4_t v) { vst1q_f32(p, v); }
inline void store(std::uint16_t* p, uint16x4_t v) { vst1_u16(p, v); }
// NEON has no intrinsic for a non-temporal store: an ordinary one.
inline void stream(float* p, float32x4_t v) { store(p, v); }
inline void stream(std::uint16_t* p, uint16x4_t v) { store(p, v); }
inline void flush_stream() {}

}  // namespace
}  // namespace compass_edge::neon
