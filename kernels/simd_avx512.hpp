// AVX-512 F, BW, VL and DQ. See simd.hpp; the same names exist for every instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace compass_edge::avx512 {
namespace {

constexpr int kBytes = 64;   // of a vector
constexpr int kFloats = 16;  // f32 lanes
using U8 = __m512i;
using I16 = __m512i;
using F32 = __m512;

inline U8 load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
inline void store(std::uint8_t* p, U8 v) { _mm512_storeu_si512(p, v); }
inline __m128i load16(const std::uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// Four 128-bit loads in one register.
inline __m512i load_lanes(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(c)), load16(d), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline __m512i repeat16(const std::int8_t (&bytes)[16]) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// 16-bit lanes. high_*: a byte in the upper half of its lane.
inline I16 splat(std::int16_t v) { return _mm512_set1_epi16(v); }
inline I16 high_even(U8 v) { return _mm512_slli_epi16(v, 8); }
inline I16 high_odd(U8 v) { return _mm512_and_si512(v, _mm512_set1_epi16(static_cast<std::int16_t>(0xff00))); }
inline I16 high_each(const std::uint8_t* p) {
    return _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 8);
}
inline I16 halve(I16 v) { return _mm512_srli_epi16(v, 1); }
inline I16 flip_sign(I16 v) { return _mm512_xor_si512(v, _mm512_set1_epi16(INT16_MIN)); }
inline I16 rounded_product(I16 a, I16 b) { return _mm512_mulhrs_epi16(a, b); }
inline I16 add(I16 a, I16 b) { return _mm512_adds_epi16(a, b); }

// >> 6, clamped to a byte, even and odd lanes interleaved.
inline U8 pack_levels(I16 even, I16 odd) {
    const __m512i packed = _mm512_packus_epi16(_mm512_srai_epi16(even, 6), _mm512_srai_epi16(odd, 6));
    return _mm512_shuffle_epi8(packed, repeat16({0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
}

// 3 * kBytes interleaved bytes. Each lane holds bytes of three loads at distinct places modulo 3, hence blend, then
// sort.
inline void split3(const std::uint8_t* p, U8& r, U8& g, U8& b) {
    const auto third = [p](int at) { return load_lanes(p + at, p + at + 48, p + at + 96, p + at + 144); };
    const __m512i v0 = third(0), v1 = third(16), v2 = third(32);
    constexpr __mmask64 m1 = 0x2492249224922492u, m2 = 0x4924492449244924u;
    const auto merge = [](__m512i at0, __m512i at1, __m512i at2) {
        return _mm512_mask_blend_epi8(m2, _mm512_mask_blend_epi8(m1, at0, at1), at2);
    };
    r = _mm512_shuffle_epi8(merge(v0, v2, v1), repeat16({0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13}));
    g = _mm512_shuffle_epi8(merge(v1, v0, v2), repeat16({1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14}));
    b = _mm512_shuffle_epi8(merge(v2, v1, v0), repeat16({2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15}));
}

// 2 * kBytes of Y0 U Y1 V to kBytes of luma and kBytes of U V pairs.
inline void split_yuyv(const std::uint8_t* p, U8& y, U8& uv) {
    const __m512i a = load(p), b = load(p + 64), low = _mm512_set1_epi16(0x00ff);
    const __m512i even = _mm512_packus_epi16(_mm512_and_si512(a, low), _mm512_and_si512(b, low));
    const __m512i odd = _mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    y = _mm512_permutexvar_epi64(order, even);
    uv = _mm512_permutexvar_epi64(order, odd);
}

// Weighted sums of kBytes pixels in 32 bits.
struct Sums {
    __m512i part[4];
};
inline __m512i pair_weights(const std::int16_t* two) {
    std::int32_t both;
    std::memcpy(&both, two, sizeof both);
    return _mm512_set1_epi32(both);
}
inline Sums start_sums(std::int32_t v) {
    const __m512i all = _mm512_set1_epi32(v);
    return {{all, all, all, all}};
}
// sums += a * weights[0] + b * weights[1]
inline void accumulate(Sums& sums, U8 a, U8 b, __m512i weights) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const auto madd = [&](__m512i sum, __m512i pixels) {
        return _mm512_add_epi32(sum, _mm512_madd_epi16(pixels, weights));
    };
    sums.part[0] = madd(sums.part[0], _mm512_unpacklo_epi8(low, zero));
    sums.part[1] = madd(sums.part[1], _mm512_unpackhi_epi8(low, zero));
    sums.part[2] = madd(sums.part[2], _mm512_unpacklo_epi8(high, zero));
    sums.part[3] = madd(sums.part[3], _mm512_unpackhi_epi8(high, zero));
}
inline U8 narrow(const Sums& sums, int shift) {
    const __m128i count = _mm_cvtsi32_si128(shift);
    const auto sra = [&](__m512i v) { return _mm512_sra_epi32(v, count); };
    return _mm512_packus_epi16(_mm512_packs_epi32(sra(sums.part[0]), sra(sums.part[1])),
                               _mm512_packs_epi32(sra(sums.part[2]), sra(sums.part[3])));
}

// kFloats neighbouring outputs of the horizontal pass, in groups of four that each read one 16-byte window.
inline __m512i load_windows(const std::uint8_t* src, const std::int32_t* window) {
    return load_lanes(src + window[0], src + window[1], src + window[2], src + window[3]);
}
inline __m512i start_sum(std::int32_t v) { return _mm512_set1_epi32(v); }
inline I16 load_weights(const std::int16_t* p) { return _mm512_loadu_si512(p); }
inline __m512i accumulate(__m512i sum, U8 windows, U8 shuffle, I16 weights) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_shuffle_epi8(windows, shuffle), weights));
}
// The shuffle of the next two inputs. The zero-writing 0x80 stays above 0x7f.
inline U8 advance(U8 shuffle) { return _mm512_add_epi8(shuffle, _mm512_set1_epi8(2)); }
inline void store_pixels(std::uint8_t* out, __m512i sum, int shift) {
    const __m512i levels = _mm512_sra_epi32(sum, _mm_cvtsi32_si128(shift));
    const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(levels, _mm512_setzero_si512()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

// f32 lanes.
inline F32 splat(float v) { return _mm512_set1_ps(v); }
inline F32 load_floats(const std::uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(p))); }
inline F32 subtract(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
inline F32 multiply(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
inline F32 multiply_add(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32 negative_multiply_add(F32 a, F32 b, F32 c) { return _mm512_fnmadd_ps(a, b, c); }

inline __m512 as_f32(F32 v) { return v; }
inline __m256i as_f16(F32 v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
inline __m256i as_bf16(F32 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline void store(float* p, __m512 v) { _mm512_storeu_ps(p, v); }
inline void store(std::uint16_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
// Past the caches; p is aligned to the vector. Ordered with later stores only by flush_stream.
inline void stream(float* p, __m512 v) { _mm512_stream_ps(p, v); }
inline void stream(std::uint16_t* p, __m256i v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v); }
inline void flush_stream() { _mm_sfence(); }

}  // namespace
}  // namespace compass_edge::avx512
